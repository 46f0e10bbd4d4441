#pragma once
// The shared state of a Work.

#include <levin/distributed/process_group.h>

#include <condition_variable>
#include <functional>
#include <mutex>

namespace levin::distributed {

struct Work::State {
  explicit State(std::string name_) : name(std::move(name_)) {}
  virtual ~State() = default;
  void finish(std::exception_ptr failure = nullptr) {
    {
      const std::lock_guard lock(mutex);
      done = true;
      error = std::move(failure);
    }
    changed.notify_all();
  }
  /// Called by wait() without a timeout. Returns true if ordering streams is enough and the host need not wait.
  virtual bool order_streams() { return false; }
  /// Lets a waiting host thread run the work itself.
  virtual void help() {}

  const std::string name;  // "all_reduce #3"
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr error;
};

}  // namespace levin::distributed
