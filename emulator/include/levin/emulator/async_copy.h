#pragma once
// Asynchronous copies from global to shared memory (cp.async) that a thread has started and not yet waited for. Until a
// copy completes its destination holds bytes 0xff (NaN in every floating type). It completes at a seeded random moment,
// at the latest at the wait, so that a missing wait gives wrong values here as on the GPU.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace levin::emulator {

class AsyncCopies {
 public:
  /// Starts a copy of `bytes`, of which `source_bytes` come from `from` and the rest are zeros. `bytes` is a multiple
  /// of 4 and both addresses are aligned to 4.
  void begin(void* to, const void* from, std::size_t bytes, std::size_t source_bytes);
  /// Puts the copies started since the last commit into a group, which may be empty.
  void commit();
  /// Completes all committed groups except the newest `pending`.
  void wait(int pending);
  /// Completes all copies, committed or not.
  void wait_all();
  /// Completes a random quarter of the copies, or none if `random` is 0. The scheduler calls it whenever the thread
  /// stops or resumes.
  void progress(std::uint64_t random);
  /// True if no copy is left to wait for.
  bool empty() const { return copies_.empty(); }
  /// Discards all copies.
  void clear() { copies_.clear(), groups_ = 0; }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes, source_bytes;
    int group;    ///< number of commits before it
    bool landed;  ///< the bytes were copied, but the thread has not waited for them yet
  };
  static void land(Copy& copy);
  void end_before(int group);

  std::vector<Copy> copies_;  ///< in the order in which they were started
  int groups_ = 0;
};

}  // namespace levin::emulator
