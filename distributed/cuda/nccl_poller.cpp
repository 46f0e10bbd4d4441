#include "cuda/nccl_poller.h"

#include <algorithm>

namespace levin::distributed {

namespace {

constexpr std::chrono::microseconds kShortest(20), kLongest(500);

std::exception_ptr exception_of(const RankEvent& event, const std::string& operation) {
  try {
    throw_event(event, operation);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

void NcclWork::set_queued() {
  {
    const std::lock_guard lock(mutex);
    queued = true;
  }
  changed.notify_all();
}

bool NcclWork::order_streams() {
  if (host_waits) return false;
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queued || done; });
    if (error) std::rethrow_exception(error);
  }
  event.wait(cuda::current_stream(device));
  return true;
}

void NcclPoller::add(NcclOperation operation) {
  const std::lock_guard lock(mutex_);
  added_.push_back(std::move(operation));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
}

void NcclPoller::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void NcclPoller::run() {
  auto pause = kShortest;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !added_.empty() || !operations_.empty(); });
      if (added_.empty() && operations_.empty()) return;
      operations_.splice(operations_.end(), added_);
    }
    pause = look() ? kShortest : std::min(2 * pause, kLongest);
    if (!operations_.empty()) std::this_thread::sleep_for(pause);
  }
}

// Returns whether anything has changed.
bool NcclPoller::look() {
  const std::size_t before = operations_.size();
  const auto now = Clock::now();
  std::erase_if(operations_, [&](const NcclOperation& o) {
    if (!is_done(o)) return false;
    o.work->finish();
    return true;
  });
  if (!group_.ended()) {
    const auto late =
        std::find_if(operations_.begin(), operations_.end(), [&](const NcclOperation& o) { return o.deadline <= now; });
    if (late != operations_.end()) {
      group_.timed_out(*late);
    } else if (!words_.empty() && suspected_ + kGrace <= now) {
      group_.failed(words_);
    }
  }
  if (const auto event = group_.ended(); event && !operations_.empty()) end(*event);
  return operations_.size() != before;
}

// A completed event counts only if NCCL reports no error, since aborting a communicator completes its events too.
bool NcclPoller::is_done(const NcclOperation& operation) {
  std::string words;
  bool done = false;
  try {
    done = operation.work->event.query();
    words = operation.comm->error();
  } catch (const std::exception& e) {
    words = e.what();
  }
  if (words.empty()) return done;
  if (words_.empty()) {
    words_ = words;
    suspected_ = Clock::now();
  }
  return false;
}

void NcclPoller::end(const RankEvent& event) {
  group_.abort();
  for (const NcclOperation& o : operations_) o.work->finish(exception_of(event, o.work->name));
  operations_.clear();
}

}  // namespace levin::distributed
