#include "kernels/cuda/device/streams.h"

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/driver.h"

#include <array>
#include <atomic>

namespace levin::kernels::cuda {

namespace {

constexpr unsigned kPooled = 32;

struct DeviceStreams {
  std::mutex mutex;
  std::atomic<cudaStream_t> standard{nullptr};
  std::array<cudaStream_t, kPooled> pooled{};
  unsigned next = 0;
};

DeviceStreams& streams_of(int device) {
  static auto& all = *new std::array<DeviceStreams, kMaxDevices>;  // never destroyed, like the work on them
  require_usable(device);
  return all[static_cast<std::size_t>(device)];
}

/// Null stands for the default stream.
constinit thread_local cudaStream_t t_current[kMaxDevices] = {};

cudaStream_t make_stream(int device, unsigned flags) {
  const DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, flags), "cudaStreamCreateWithFlags");
  return stream;
}

}  // namespace

cudaStream_t default_stream(int device) {
  DeviceStreams& s = streams_of(device);
  if (cudaStream_t stream = s.standard.load(std::memory_order_acquire)) return stream;
  const std::lock_guard lock(s.mutex);
  if (!s.standard.load()) s.standard.store(make_stream(device, cudaStreamDefault), std::memory_order_release);
  return s.standard.load();
}

cudaStream_t next_pooled_stream(int device) {
  DeviceStreams& s = streams_of(device);
  const std::lock_guard lock(s.mutex);
  cudaStream_t& stream = s.pooled[s.next++ % kPooled];
  if (!stream) stream = make_stream(device, cudaStreamNonBlocking);
  return stream;
}

cudaStream_t current_stream(int device) {
  if (device >= 0 && device < kMaxDevices && t_current[device]) return t_current[device];
  return default_stream(device);
}

void set_current_stream(int device, cudaStream_t stream) {
  require_usable(device);
  t_current[device] = stream;
}

cudaStream_t stream_on(int device, const Stream& stream) {
  const bool here = stream.device().type == levin::DeviceType::cuda && stream.device().index == device;
  return here ? static_cast<cudaStream_t>(stream.handle()) : current_stream(device);
}

cudaEvent_t EventPool::take(int device) {
  {
    const std::lock_guard lock(mutex_);
    if (static_cast<std::size_t>(device) >= free_.size()) free_.resize(static_cast<std::size_t>(device) + 1);
    auto& free = free_[static_cast<std::size_t>(device)];
    if (!free.empty()) {
      cudaEvent_t event = free.back();
      free.pop_back();
      return event;
    }
  }
  const DeviceGuard guard(device);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}

void EventPool::put_back(int device, cudaEvent_t event) noexcept {
  const std::lock_guard lock(mutex_);
  free_[static_cast<std::size_t>(device)].push_back(event);
}

EventPool& event_pool() {
  static EventPool& pool = *new EventPool;
  return pool;
}

void order_streams(int earlier_device, cudaStream_t earlier, int later_device, cudaStream_t later) {
  if (earlier == later && earlier_device == later_device) return;
  cudaEvent_t event = event_pool().take(earlier_device);
  cudaError_t error = cudaSuccess;
  {
    const DeviceGuard guard(earlier_device);
    error = cudaEventRecord(event, earlier);
  }
  if (error == cudaSuccess) {
    const DeviceGuard guard(later_device);
    error = cudaStreamWaitEvent(later, event, 0);
  }
  event_pool().put_back(earlier_device, event);  // a queued wait keeps the event's state
  check(error, "cudaStreamWaitEvent");
}

}  // namespace levin::kernels::cuda
