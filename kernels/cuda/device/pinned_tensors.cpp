#include "kernels/cuda/device/pinned_tensors.h"

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/streams.h"

#include <levin/core/tensor.h>
#include <levin/kernels/cuda.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace levin::kernels::cuda {

namespace {

constexpr std::size_t kSmallest = 4096;

}  // namespace

void* PinnedTensors::take(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  const std::lock_guard lock(mutex_);
  poll();
  ++stats_.in_use;
  if (const auto found = free_.find(size); found != free_.end()) {
    std::byte* p = found->second;
    free_.erase(found);
    blocks_[p].standing = Standing::held;
    return p;
  }
  void* p = nullptr;
  const cudaError_t error = cudaHostAlloc(&p, size, cudaHostAllocPortable);
  if (error != cudaSuccess) --stats_.in_use;
  check(error, "cudaHostAlloc");
  stats_.reserved += size;
  ++stats_.system_allocations;
  blocks_[static_cast<std::byte*>(p)] = {size, Standing::held, {}};
  return p;
}

void PinnedTensors::give_back(void* p) noexcept {
  const std::lock_guard lock(mutex_);
  blocks_[static_cast<std::byte*>(p)].standing = Standing::in_flight;
  --stats_.in_use;
  ++stats_.in_flight;
  poll();
}

PinnedTensors::Blocks::const_iterator PinnedTensors::find(const void* p) const {
  auto at = blocks_.upper_bound(static_cast<const std::byte*>(p));
  if (at == blocks_.begin()) return blocks_.end();
  --at;
  return static_cast<const std::byte*>(p) < at->first + at->second.bytes ? at : blocks_.end();
}

bool PinnedTensors::holds(const void* p, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = find(p);
  return at != blocks_.end() && at->second.standing == Standing::held &&
         static_cast<const std::byte*>(p) + bytes <= at->first + at->second.bytes;
}

void PinnedTensors::record_use(const void* p, int device, cudaStream_t stream) {
  const DeviceGuard guard(device);
  cudaEvent_t event = event_pool().take(device);
  const cudaError_t error = cudaEventRecord(event, stream);
  const std::lock_guard lock(mutex_);
  std::vector<Use>& uses = blocks_.find(find(p)->first)->second.uses;
  drop_finished(uses);
  uses.push_back({device, event});
  check(error, "cudaEventRecord");
}

void PinnedTensors::drop_finished(std::vector<Use>& uses) noexcept {
  std::erase_if(uses, [](const Use& use) {
    if (cudaEventQuery(use.done) == cudaErrorNotReady) return false;
    event_pool().put_back(use.device, use.done);
    return true;
  });
  static_cast<void>(cudaGetLastError());  // clears cudaErrorNotReady
}

/// Frees the blocks without a tensor and without a copy in flight.
void PinnedTensors::poll() noexcept {
  if (stats_.in_flight == 0) return;
  for (auto& [p, block] : blocks_) {
    if (block.standing != Standing::in_flight) continue;
    drop_finished(block.uses);
    if (!block.uses.empty()) continue;
    block.standing = Standing::unused;
    free_.emplace(block.bytes, const_cast<std::byte*>(p));
    --stats_.in_flight;
  }
}

void PinnedTensors::empty() {
  const std::lock_guard lock(mutex_);
  poll();
  for (const auto& [size, p] : free_) {
    static_cast<void>(cudaFreeHost(p));
    blocks_.erase(p);
    stats_.reserved -= size;
  }
  free_.clear();
}

PinnedTensors::Stats PinnedTensors::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

PinnedTensors& pinned_tensors() {
  static PinnedTensors& all = *new PinnedTensors;  // never destroyed: copies may still run at exit
  return all;
}

}  // namespace levin::kernels::cuda

namespace levin {

namespace backend = kernels::cuda;

Tensor cuda::pin_memory(const Tensor& tensor) {
  if (tensor.device() != kCpu) {
    throw DeviceError(fmt::format("[pin_memory] the tensor is on {}; only memory of the cpu can be page-locked.",
                                  to_string(tensor.device())));
  }
  if (is_pinned(tensor)) return tensor;
  backend::require_usable(0);
  const Tensor dense = tensor.is_contiguous() ? tensor : tensor.contiguous();
  const auto bytes = static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()));
  void* p = backend::pinned_tensors().take(bytes);
  std::memcpy(p, dense.raw_data(), bytes);
  return from_blob(p, dense.sizes(), {.dtype = dense.dtype()}, [p] { backend::pinned_tensors().give_back(p); });
}

bool cuda::is_pinned(const Tensor& tensor) {
  return tensor.defined() && tensor.device() == kCpu && backend::pinned_tensors().holds(tensor.storage()->data(), 1);
}

}  // namespace levin
