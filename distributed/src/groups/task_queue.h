#pragma once
// A thread that runs tasks in order. A thread that waits for a task may run tasks itself.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace levin::distributed {

class TaskQueue {
 public:
  /// Appends a job. The thread starts with the first one.
  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_one();
  }
  /// Runs jobs on the calling thread until `done`, as long as no other thread runs one. It saves the wake-up of the
  /// queue's thread where the caller waits anyway.
  template <class Done>
  void help(const Done& done) {
    std::unique_lock lock(mutex_);
    while (!running_ && !jobs_.empty() && !done()) run_first(lock);
    if (!running_ && (stopping_ || !jobs_.empty())) changed_.notify_one();
  }
  /// Returns when all jobs are done and the thread has ended.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !running_ && (stopping_ || !jobs_.empty()); });
      if (jobs_.empty()) return;
      run_first(lock);
    }
  }
  void run_first(std::unique_lock<std::mutex>& lock) {
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    running_ = true;
    lock.unlock();
    job();
    job = nullptr;  // destroys its captures before the next wait
    lock.lock();
    running_ = false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false, running_ = false;
  std::thread thread_;
};

}  // namespace levin::distributed
