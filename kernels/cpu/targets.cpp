// Finds out which of Highway's targets this processor runs.
#include "kernels/cpu/targets.h"

#include <levin/core/error.h>

#include <fmt/format.h>
#include <hwy/targets.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

#if defined(__x86_64__)

/// The registers that one leaf of CPUID returns; all zero if the processor does not have the leaf.
struct Leaf {
  explicit Leaf(unsigned number) { __get_cpuid_count(number, 0, &eax, &ebx, &ecx, &edx); }
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

constexpr bool all_of(unsigned word, unsigned bits) { return (word & bits) == bits; }

/// Returns the register states that the operating system saves (XCR0), 0 if it does not use XSAVE. Without the state of
/// a register file its instructions fault, whatever CPUID says.
std::uint64_t saved_states(const Leaf& features) {
  if (!all_of(features.ecx, bit_OSXSAVE)) return 0;
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

/// Returns a bit for each target all of whose instructions can be used here (Intel's Software Developer's Manual,
/// volume 1, chapters 14 and 15, on the detection of AVX2 and of AVX-512). The lists are those of Highway's
/// HWY_TARGET_STR_*.
std::int64_t detect() {
  constexpr std::uint64_t kAvxStates = 0x6, kAvx512States = 0xe6;  // xmm and ymm; then opmask and zmm as well
  const Leaf features(1), extended(7), amd(0x80000001);
  const std::uint64_t states = saved_states(features);
  std::int64_t targets = HWY_EMU128 | HWY_SCALAR;
  if (!all_of(features.ecx, bit_SSSE3)) return targets;
  targets |= HWY_SSSE3;
  if (!all_of(features.ecx, bit_SSE4_1 | bit_SSE4_2 | bit_PCLMUL | bit_AES)) return targets;
  targets |= HWY_SSE4;
  if (!all_of(features.ecx, bit_AVX | bit_FMA | bit_F16C) || !all_of(extended.ebx, bit_AVX2 | bit_BMI | bit_BMI2) ||
      !all_of(amd.ecx, bit_LZCNT) || (states & kAvxStates) != kAvxStates) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (!all_of(extended.ebx, bit_AVX512F | bit_AVX512VL | bit_AVX512DQ | bit_AVX512BW) ||
      (states & kAvx512States) != kAvx512States) {
    return targets;
  }
  return targets | HWY_AVX3;
}

/// Returns the targets up to the one that LEVIN_CPU_CAPABILITY names, all of them if it is not set. AMX is not one of
/// Highway's targets: gemm/amx.cpp decides on it.
std::int64_t permitted() {
  const char* const text = std::getenv("LEVIN_CPU_CAPABILITY");
  const std::string_view name = text ? text : "";
  constexpr std::int64_t sse4 = HWY_EMU128 | HWY_SCALAR | HWY_SSSE3 | HWY_SSE4, avx2 = sse4 | HWY_AVX2;
  if (name.empty() || name == "avx512" || name == "amx") return avx2 | HWY_AVX3;
  if (name == "avx2") return avx2;
  if (name == "sse4") return sse4;
  throw levin::ValueError(
      fmt::format("LEVIN_CPU_CAPABILITY is \"{}\"; give sse4, avx2, avx512 or amx, or unset it.", name));
}

#else

std::int64_t detect() { return HWY_ENABLED_BASELINE | HWY_EMU128 | HWY_SCALAR; }
std::int64_t permitted() { return ~std::int64_t{0}; }

#endif

}  // namespace

namespace hwy {

std::int64_t SupportedTargets() {
  static const std::int64_t targets = detect() & permitted();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
