#include "cpu_backend.h"

#include <levin/core/allocator.h>
#include <levin/core/parallel.h>

#include <fmt/format.h>

#include <cstring>
#include <thread>

namespace levin {

namespace {

class CpuBackend final : public DeviceBackend {
 public:
  std::string name() const override { return "cpu"; }
  int device_count() const override { return 1; }
  void* allocate(std::size_t bytes, Stream&) override { return cpu_allocator::allocate(bytes); }
  void free(void* p, std::size_t bytes, int) noexcept override { cpu_allocator::free(p, bytes); }
  void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, Stream&) override {
    if (to_device != kCpu || from_device != kCpu) {
      throw DeviceError(
          fmt::format("[copy] the cpu's backend cannot copy from {} to {}; the other device's backend does.",
                      to_string(from_device), to_string(to_device)));
    }
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void fill_bytes(void* p, int value, std::size_t bytes, Stream&) override {
    if (bytes > 0) std::memset(p, value, bytes);
  }
  Stream current_stream(int) override { return Stream(kCpu); }
  void synchronize(int) override {}
  MemoryStats memory_stats(int) const override { return cpu_allocator::stats(); }
  void empty_cache(int) override { cpu_allocator::empty_cache(); }
  std::string properties(int) const override {
    return fmt::format("cpu with {} hardware threads, {} in use", std::thread::hardware_concurrency(), num_threads());
  }
};

}  // namespace

DeviceBackend& cpu_backend() {
  static CpuBackend& backend = *new CpuBackend;  // never destroyed: tensors may outlive main
  return backend;
}

}  // namespace levin
