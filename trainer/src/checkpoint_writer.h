#pragma once
// Writes beside training, one checkpoint at a time.

#include <functional>
#include <future>

namespace levin {

class CheckpointWriter {
 public:
  explicit CheckpointWriter(bool asynchronous) : asynchronous_(asynchronous) {}

  /// Runs `job`, or begins to; the one before has been waited for. A job that runs now throws what it throws.
  void run(std::function<void()> job) {
    if (asynchronous_) {
      running_ = std::async(std::launch::async, std::move(job));
    } else {
      job();
    }
  }
  bool is_writing() const { return running_.valid(); }
  /// Waits for the job, and throws what it threw.
  void wait() { running_.get(); }

 private:
  bool asynchronous_;
  std::future<void> running_;  // its destructor waits
};

}  // namespace levin
