#pragma once
// Threads that load batches ahead and hand them out in order.

#include "load_job.h"

#include <memory>
#include <thread>

namespace levin::data::detail {

class WorkerPool {
 public:
  /// At most `ahead` turns are loaded and not yet taken. Each thread calls `init` first.
  WorkerPool(int workers, int64_t ahead, std::function<void(int)> init);
  /// Waits for the threads, except after a timeout: a thread that may never return is detached.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Starts a job at turn `first`; drops the rest of the previous job.
  void start(std::shared_ptr<const LoadJob> job, int64_t first);
  /// Drops the job and waits until no thread works on it.
  void cancel();
  /// Returns the result of the next turn, or throws its exception, after which the job is cancelled. Waits at most
  /// `timeout` seconds if that is above 0; then throws an Error that names the worker.
  std::optional<Batch> next(double timeout);
  /// True after a timeout or a failed init; the pool must then be replaced.
  bool broken() const { return broken_; }

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state, int worker);
  static bool initialise(State& state, int worker);
  [[noreturn]] void give_up(double timeout);
  std::shared_ptr<State> state_;  // shared with the threads, which may outlive the pool
  std::vector<std::thread> threads_;
  bool abandoned_ = false;  // a thread may never return
  bool broken_ = false;
};

}  // namespace levin::data::detail
