#pragma once
// A device custom0 with memory but without kernels: its memory is the host's. host_port.h adds kernels.

#include <levin/core/allocator.h>
#include <levin/core/device.h>

#include <atomic>
#include <cstring>

namespace levin::test {

class HostDevice final : public DeviceBackend {
 public:
  static constexpr int kDevices = 4;
  std::string name() const override { return "custom0"; }
  int device_count() const override { return kDevices; }
  void* allocate(std::size_t bytes, Stream&) override { return cpu_allocator::allocate(bytes); }
  void free(void* p, std::size_t bytes, int) noexcept override { cpu_allocator::free(p, bytes); }
  void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, Stream&) override {
    if (bytes == 0) return;
    std::memcpy(to, from, bytes);
    if (to_device != from_device) moved += static_cast<int64_t>(bytes);
  }
  void fill_bytes(void* p, int value, std::size_t bytes, Stream&) override {
    if (bytes > 0) std::memset(p, value, bytes);
  }
  Stream current_stream(int index) override { return Stream({DeviceType::custom0, static_cast<std::int8_t>(index)}); }
  void synchronize(int) override {}
  MemoryStats memory_stats(int) const override { return cpu_allocator::stats(); }
  void empty_cache(int) override {}
  std::string properties(int) const override { return "the host's memory"; }

  std::atomic<std::int64_t> moved{0};  ///< bytes copied between devices
};

/// Returns the device, which is registered at the first call.
inline HostDevice& host_backend() {
  static HostDevice& backend = *new HostDevice;
  static const bool registered = (register_device(DeviceType::custom0, backend), true);
  (void)registered;
  return backend;
}

inline Device other_host(int index = 0) {
  host_backend();
  return {DeviceType::custom0, static_cast<std::int8_t>(index)};
}

}  // namespace levin::test
