#pragma once
// Threads that load batches ahead and hand them out in order.

#include "load_job.h"

#include <memory>
#include <thread>

namespace levin::data::detail {

class WorkerPool {
 public:
  /// `ahead` batches may be loaded and not yet taken.
  WorkerPool(int workers, int64_t ahead);
  /// Waits for the threads, except after a timeout: a thread that may never come back is left alone.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Begins with batch `first`; what another job left is dropped.
  void start(std::shared_ptr<const LoadJob> job, int64_t first);
  /// Drops the job and waits until no thread works on it.
  void cancel();
  /// The next batch, or its exception, after which the job is cancelled. Waits at most `timeout` seconds if that is
  /// above 0; then throws an Error that names the worker, and the pool must not be used any more.
  Batch next(double timeout);
  bool abandoned() const { return abandoned_; }

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state, int worker);
  std::shared_ptr<State> state_;  // shared with the threads, which may outlive the pool
  std::vector<std::thread> threads_;
  bool abandoned_ = false;
};

}  // namespace levin::data::detail
