#pragma once
// The threads behind parallel_for, unless LEVIN_THREADS chooses others. A worker that has nothing to do spins for some
// microseconds, since the next loop usually follows soon, and then sleeps, so that idle workers leave their cores to
// other programs. All calling threads share the workers.

#include <array>
#include <cstddef>
#include <cstdint>

namespace levin::detail {

constexpr std::size_t kMostWorkers = 512;
using WorkerSet = std::array<std::uint64_t, kMostWorkers / 64>;  // a bit for each worker

/// The workers that help one calling thread with one task. A task is a function that takes chunks of a loop until none
/// is left; it must not throw. Any subset of the workers may run it: none need come, and each comes once.
class Crew {
 public:
  using Task = void (*)(void* loop, int member);

  /// Asks up to `wanted` idle ones of the first `usable` workers to call task(loop, member), where members are numbered
  /// from 1 (0 is the caller). Workers start when they are first wanted; if the system refuses one, those that exist do
  /// the work.
  Crew(Task task, void* loop, int wanted, int usable);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// True if other callers held some of the wanted workers.
  bool short_handed() const { return members_ < wanted_; }
  /// Asks workers that have become idle since.
  void recruit();

  /// Cancels the task for workers that have not begun it, waits for the others, and releases all. The caller has taken
  /// the last chunk before. Throws StateError in a child that was forked inside the loop while workers computed.
  void finish();

 private:
  Task task_;
  void* loop_;
  int wanted_, usable_, members_ = 0;
  unsigned forks_;
  WorkerSet claimed_{};
};

}  // namespace levin::detail
