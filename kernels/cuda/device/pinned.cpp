#include "kernels/cuda/device/pinned.h"

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/streams.h"

#include <algorithm>
#include <bit>

namespace levin::kernels::cuda {

namespace {

std::size_t class_of(std::size_t bytes) {
  return static_cast<std::size_t>(std::countr_zero(bytes) - std::countr_zero(PinnedPool::kSmallest));
}

}  // namespace

PinnedPool::Buffer PinnedPool::take(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  const std::lock_guard lock(mutex_);
  poll();
  std::vector<void*>& free = free_[class_of(size)];
  while (free.empty() && stats_.reserved + size > kMost && !in_flight_.empty()) wait_for_oldest();
  if (free.empty()) {
    void* p = nullptr;
    check(cudaHostAlloc(&p, size, cudaHostAllocPortable), "cudaHostAlloc");
    stats_.reserved += size;
    ++stats_.system_allocations;
    return {p, size};
  }
  void* p = free.back();
  free.pop_back();
  return {p, size};
}

void PinnedPool::put_back(Buffer buffer, int device, cudaStream_t stream) {
  cudaEvent_t event = event_pool().take(device);
  const DeviceGuard guard(device);
  const cudaError_t error = cudaEventRecord(event, stream);
  const std::lock_guard lock(mutex_);
  in_flight_.push_back({buffer, device, event});
  ++stats_.in_flight;
  check(error, "cudaEventRecord");
}

void PinnedPool::land(const InFlight& f) noexcept {
  event_pool().put_back(f.device, f.done);
  free_[class_of(f.buffer.bytes)].push_back(f.buffer.p);
  --stats_.in_flight;
}

void PinnedPool::poll() noexcept {
  std::erase_if(in_flight_, [this](const InFlight& f) {
    if (cudaEventQuery(f.done) == cudaErrorNotReady) return false;
    land(f);
    return true;
  });
  static_cast<void>(cudaGetLastError());  // clears cudaErrorNotReady
}

void PinnedPool::wait_for_oldest() noexcept {
  const InFlight f = in_flight_.front();
  in_flight_.pop_front();
  static_cast<void>(cudaEventSynchronize(f.done));
  land(f);
}

void PinnedPool::empty() {
  const std::lock_guard lock(mutex_);
  while (!in_flight_.empty()) wait_for_oldest();
  for (std::size_t c = 0; c < free_.size(); ++c) {
    for (void* p : free_[c]) {
      static_cast<void>(cudaFreeHost(p));
      stats_.reserved -= kSmallest << c;
    }
    free_[c].clear();
  }
}

PinnedPool::Stats PinnedPool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

PinnedPool& pinned_pool() {
  static PinnedPool& pool = *new PinnedPool;  // never destroyed: copies may still run at exit
  return pool;
}

}  // namespace levin::kernels::cuda
