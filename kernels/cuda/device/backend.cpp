#include "kernels/cuda/device/backend.h"

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/device/allocator.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/pinned.h"
#include "kernels/cuda/device/pinned_tensors.h"
#include "kernels/cuda/device/streams.h"
#include "kernels/cuda/indexing/guard.h"

#include <cstdlib>
#include <string_view>

namespace levin::kernels::cuda {

namespace {

class CudaBackend final : public DeviceBackend {
 public:
  std::string name() const override { return "cuda"; }
  int device_count() const override { return cuda::device_count(); }

  std::string why_unavailable(int device_index) const override {
    try {
      require_usable(device_index);
    } catch (const DeviceError& e) {
      return e.what();
    }
    return {};
  }

  void* allocate(std::size_t bytes, Stream& stream) override { return allocate_scratch(bytes, stream); }

  void free(void* p, std::size_t, int device_index) noexcept override {
    if (p) allocator(device_index).free(p);
  }

  void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
            Stream& stream) override {
    copy_bytes(to, to_device, from, from_device, bytes, stream);
  }

  void fill_bytes(void* p, int value, std::size_t bytes, Stream& stream) override {
    if (bytes == 0) return;
    const int device = stream.device().index;
    const DeviceGuard guard(device);
    check(cudaMemsetAsync(p, value, bytes, stream_on(device, stream)), "cudaMemsetAsync");
  }

  Stream current_stream(int device_index) override {
    return as_stream(device_index, cuda::current_stream(device_index));
  }

  void synchronize(int device_index) override {
    require_usable(device_index);
    const DeviceGuard guard(device_index);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    throw_refused_index(device_index);
  }

  MemoryStats memory_stats(int device_index) const override {
    const levin::cuda::MemoryReport r = allocator(device_index).report();
    MemoryStats s;
    s.allocated = r.allocated;
    s.peak_allocated = r.peak_allocated;
    s.reserved = r.reserved;
    s.live_blocks = r.live_blocks;
    s.system_allocations = r.system_allocations;
    return s;
  }

  void empty_cache(int device_index) override {
    allocator(device_index).empty_cache();
    pinned_pool().empty();
    pinned_tensors().empty();
  }

  std::string properties(int device_index) const override { return describe_device(device_index); }
};

const bool registered = (register_device(levin::DeviceType::cuda, *backend()), true);

}  // namespace

DeviceBackend* backend() {
  static CudaBackend& the_backend = *new CudaBackend;  // never destroyed: tensors may outlive main
  return &the_backend;
}

std::atomic<bool>& fills_new_memory() {
  static std::atomic<bool> fills = [] {
    const char* const text = std::getenv("LEVIN_CUDA_FILL");
    return text && std::string_view(text) == "1";
  }();
  return fills;
}

void* allocate_scratch(std::size_t bytes, Stream& stream) {
  const int device = stream.device().index;
  const cudaStream_t on = stream_on(device, stream);
  void* const p = allocator(device).allocate(bytes, on);
  if (bytes == 0 || !fills_new_memory()) return p;
  const DeviceGuard guard(device);
  if (const cudaError_t error = cudaMemsetAsync(p, 0xff, bytes, on); error != cudaSuccess) {
    allocator(device).free(p);
    check_failed(error, "cudaMemsetAsync");
  }
  return p;
}

void free_scratch(void* p, std::size_t, const Stream& stream) noexcept { allocator(stream.device().index).free(p); }

}  // namespace levin::kernels::cuda
