#include <levin/trainer/train_state.h>

#include <atomic>
#include <mutex>

namespace levin {

struct StopToken::Request {
  std::mutex mutex;
  std::atomic<bool> made{false};
  std::string reason;
};

StopToken::StopToken() : request_(std::make_unique<Request>()) {}
StopToken::~StopToken() = default;

void StopToken::request(const std::string& reason) {
  const std::lock_guard lock(request_->mutex);
  if (!request_->made.exchange(true)) request_->reason = reason;
}

bool StopToken::requested() const { return request_->made.load(std::memory_order_relaxed); }

std::string StopToken::reason() const {
  const std::lock_guard lock(request_->mutex);
  return request_->reason;
}

void StopToken::clear() {
  const std::lock_guard lock(request_->mutex);
  request_->made = false;
  request_->reason.clear();
}

}  // namespace levin
