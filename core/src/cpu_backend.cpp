#include "cpu_backend.h"

#include <levin/core/allocator.h>
#include <levin/core/parallel.h>
#include <levin/core/simd_build.h>

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace levin {

namespace {

InstructionSets instruction_sets_of_this_processor() {
#if defined(__x86_64__)
  return {.sse4_2 = __builtin_cpu_supports("sse4.2") != 0,
          .pclmul = __builtin_cpu_supports("pclmul") != 0,
          .aes = __builtin_cpu_supports("aes") != 0,
          .avx2 = __builtin_cpu_supports("avx2") != 0,
          .avx512 = __builtin_cpu_supports("avx512bw") != 0};
#else
  return {};
#endif
}

class CpuBackend final : public DeviceBackend {
 public:
  CpuBackend() {
    const InstructionSets present = instruction_sets_of_this_processor();
    require_instruction_sets(present);
    if constexpr (std::string_view(LEVIN_SIMD) != "all") {
      const char* const limit = std::getenv("LEVIN_CPU_CAPABILITY");
      require_only_instruction_set(LEVIN_SIMD, present, limit ? limit : "");
    }
  }
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

void require_instruction_sets(const InstructionSets& present) {
  std::string missing;
  if (!present.sse4_2) missing += " SSE4.2";
  if (!present.pclmul) missing += " PCLMUL";
  if (!present.aes) missing += " AES";
  if (!missing.empty())
    throw DeviceError(
        fmt::format("[cpu] this processor lacks{}, which the kernels need; use an x86-64 processor of 2011 or "
                    "later.",
                    missing));
}

void require_only_instruction_set(std::string_view simd, const InstructionSets& present, std::string_view limit) {
  const std::string_view name = simd == "AVX3" ? "AVX-512" : simd;
  if ((simd == "AVX2" && !present.avx2) || (simd == "AVX3" && !present.avx512)) {
    throw DeviceError(fmt::format("[cpu] this processor lacks {}, the only instruction set that this build has kernels "
                                  "for; configure it with -DLEVIN_SIMD=all.",
                                  name));
  }
  if ((simd != "SSE4" && limit == "sse4") || (simd == "AVX3" && limit == "avx2")) {
    throw ValueError(fmt::format("LEVIN_CPU_CAPABILITY is \"{}\", but this build has kernels for {} alone; configure "
                                 "it with -DLEVIN_SIMD=all, or unset LEVIN_CPU_CAPABILITY.",
                                 limit, name));
  }
}

DeviceBackend& cpu_backend() {
  static CpuBackend& backend = *new CpuBackend;  // never destroyed: tensors may outlive main
  return backend;
}

}  // namespace levin
