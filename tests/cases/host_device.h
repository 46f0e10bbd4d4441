#pragma once
// A device that has memory but no kernels: the host's memory under the name custom0.

#include <levin/core/allocator.h>
#include <levin/core/device.h>

#include <cstring>

namespace levin::test {

class HostDevice final : public DeviceBackend {
 public:
  std::string name() const override { return "custom0"; }
  int device_count() const override { return 1; }
  void* allocate(std::size_t bytes, Stream&) override { return cpu_allocator::allocate(bytes); }
  void free(void* p, std::size_t bytes, int) noexcept override { cpu_allocator::free(p, bytes); }
  void copy(void* to, Device, const void* from, Device, std::size_t bytes, Stream&) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void fill_bytes(void* p, int value, std::size_t bytes, Stream&) override {
    if (bytes > 0) std::memset(p, value, bytes);
  }
  Stream current_stream(int) override { return Stream({DeviceType::custom0, 0}); }
  void synchronize(int) override {}
  MemoryStats memory_stats(int) const override { return cpu_allocator::stats(); }
  void empty_cache(int) override {}
  std::string properties(int) const override { return "the host's memory"; }
};

/// Registers the device at the first call.
inline Device other_host() {
  static HostDevice& device = *new HostDevice;
  static const bool registered = (register_device(DeviceType::custom0, device), true);
  return {DeviceType::custom0, static_cast<std::int8_t>(registered ? 0 : -1)};
}

}  // namespace levin::test
