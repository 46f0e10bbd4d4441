#pragma once
// Writes one checkpoint at a time, optionally on a thread.

#include <functional>
#include <future>

namespace levin {

class CheckpointWriter {
 public:
  explicit CheckpointWriter(bool asynchronous) : asynchronous_(asynchronous) {}

  /// Runs or starts `job`; the previous job must have been waited for. A synchronous job's exceptions propagate.
  void run(std::function<void()> job) {
    if (asynchronous_) {
      running_ = std::async(std::launch::async, std::move(job));
    } else {
      job();
    }
  }
  bool is_writing() const { return running_.valid(); }
  /// Waits for the job and rethrows its exception.
  void wait() { running_.get(); }

 private:
  bool asynchronous_;
  std::future<void> running_;  // its destructor waits for the job
};

}  // namespace levin
