// levin::cuda: devices and memory.

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/allocator.h"
#include "kernels/cuda/device/backend.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/pinned.h"
#include "kernels/cuda/device/pinned_tensors.h"
#include "kernels/cuda/device/streams.h"
#include "kernels/cuda/indexing/guard.h"

#include <levin/core/tensor.h>

#include <fmt/format.h>

namespace levin {

namespace backend = kernels::cuda;

namespace {

backend::Allocator& memory_of(int device) { return backend::allocator(backend::resolve_device(device)); }

}  // namespace

bool cuda::is_available() { return backend::device_count() > 0; }

const char* cuda::flavour() {
#if defined(LEVIN_EMULATED)
  return "EMULATE";
#else
  return "ON";
#endif
}

int cuda::device_count() { return backend::device_count(); }

std::string cuda::why_unavailable() { return backend::why_unavailable(); }

int cuda::current_device() { return backend::resolve_device(kCurrent); }

void cuda::set_device(int device) {
  backend::require_usable(device);
  backend::check(cudaSetDevice(device), "cudaSetDevice");
}

void cuda::synchronize(int device) {
  device = backend::resolve_device(device);
  const backend::DeviceGuard guard(device);
  backend::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  backend::throw_refused_index(device);
}

cuda::DeviceProperties cuda::get_device_properties(int device) {
  const cudaDeviceProp& from = backend::device_properties(backend::resolve_device(device));
  DeviceProperties p;
  p.name = from.name;
  p.major = from.major;
  p.minor = from.minor;
  p.multi_processor_count = from.multiProcessorCount;
  p.warp_size = from.warpSize;
  p.max_threads_per_block = from.maxThreadsPerBlock;
  p.max_threads_per_multi_processor = from.maxThreadsPerMultiProcessor;
  p.regs_per_multiprocessor = from.regsPerMultiprocessor;
  p.shared_memory_per_block = from.sharedMemPerBlock;
  p.shared_memory_per_block_optin = from.sharedMemPerBlockOptin;
  p.shared_memory_per_multiprocessor = from.sharedMemPerMultiprocessor;
  p.l2_cache_size = static_cast<std::size_t>(from.l2CacheSize);
  p.total_memory = from.totalGlobalMem;
  return p;
}

cuda::DeviceGuard::DeviceGuard(int device) : former_(current_device()) {
  if (device != kCurrent && device != former_) set_device(device);
}

cuda::DeviceGuard::~DeviceGuard() { static_cast<void>(cudaSetDevice(former_)); }

std::size_t cuda::memory_allocated(int device) { return memory_stats(device).allocated; }
std::size_t cuda::max_memory_allocated(int device) { return memory_stats(device).peak_allocated; }
std::size_t cuda::memory_reserved(int device) { return memory_stats(device).reserved; }
std::size_t cuda::max_memory_reserved(int device) { return memory_stats(device).peak_reserved; }

void cuda::reset_peak_memory_stats(int device) { memory_of(device).reset_peaks(); }

void cuda::empty_cache() {
  backend::empty_all_caches();
  backend::pinned_pool().empty();
  backend::pinned_tensors().empty();
}

cuda::MemoryReport cuda::memory_stats(int device) { return memory_of(device).report(); }

std::string cuda::memory_summary(int device) {
  return backend::summary(backend::resolve_device(device), memory_stats(device));
}

void cuda::set_memory_cap(std::size_t bytes, int device) { memory_of(device).set_cap(bytes); }

void cuda::set_per_process_memory_fraction(double fraction, int device) {
  if (!(fraction > 0 && fraction <= 1)) {
    throw ValueError(fmt::format("[cuda] a part of the device's memory is over 0 and up to 1, not {}.", fraction));
  }
  const std::size_t total = get_device_properties(device).total_memory;
  set_memory_cap(static_cast<std::size_t>(static_cast<double>(total) * fraction), device);
}

void cuda::fill_uninitialized_memory(bool on) { backend::fills_new_memory() = on; }

void cuda::record_stream(const Tensor& tensor, const Stream& stream) {
  if (tensor.device() != stream.device()) {
    throw DeviceError(fmt::format("[record_stream] the tensor is on {}, the stream on {}. Both must be of one device.",
                                  to_string(tensor.device()), to_string(stream.device())));
  }
  memory_of(stream.device().index).record_stream(tensor.storage()->data(), static_cast<cudaStream_t>(stream.handle()));
}

}  // namespace levin
