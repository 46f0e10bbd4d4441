#include "cpu_backend.h"

#include <levin/core/allocator.h>
#include <levin/core/capture/host_capture.h>
#include <levin/core/storage.h>

#include <atomic>

namespace levin {

namespace {

constinit std::atomic<int64_t> live_storages{0};

void* allocate_on(Device device, std::size_t bytes) {
  [[maybe_unused]] static const DeviceBackend& checked = cpu_backend();  // throws if no kernels are for this processor
  if (device.type == DeviceType::cpu) return cpu_allocator::allocate(bytes);
  require_device(device);
  Stream stream = current_stream(device);
  return device_backend(device).allocate(bytes, stream);
}

}  // namespace

Storage::Storage(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
  if (detail::host_capture && device == kCpu) [[unlikely]] {
    std::function<void()> release;
    data_ = detail::host_capture->allocate(bytes, release);
    release_ = new std::function<void()>(std::move(release));
  } else {
    data_ = allocate_on(device, bytes);
  }
  live_storages.fetch_add(1, std::memory_order_relaxed);
}

Storage::Storage(void* data, std::size_t bytes, Device device, std::function<void()> release)
    : data_(data), bytes_(bytes), device_(device), release_(new std::function<void()>(std::move(release))) {
  live_storages.fetch_add(1, std::memory_order_relaxed);
}

Storage::~Storage() {
  live_storages.fetch_sub(1, std::memory_order_relaxed);
  if (release_) {
    if (*release_) (*release_)();
    delete release_;
  } else if (device_.type == DeviceType::cpu) {
    cpu_allocator::free(data_, bytes_);
  } else {
    device_backend(device_).free(data_, bytes_, device_.index);
  }
}

int64_t Storage::live_count() { return live_storages.load(std::memory_order_relaxed); }

}  // namespace levin
