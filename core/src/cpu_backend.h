#pragma once
// The CPU backend, which every build has.

#include <levin/core/device.h>

#include <string_view>

namespace levin {

/// Returns the CPU backend; throws what require_instruction_sets() and require_only_instruction_set() throw.
DeviceBackend& cpu_backend();

/// Instruction sets of a processor. The first three are the kernels' baseline, which is SSE4 as Highway defines it.
struct InstructionSets {
  bool sse4_2 = true, pclmul = true, aes = true, avx2 = true, avx512 = true;
};

/// Throws DeviceError that names the instruction sets of the baseline which `present` lacks.
void require_instruction_sets(const InstructionSets& present);

/// Checks a build with kernels for `simd` alone, which is "SSE4", "AVX2" or "AVX3" (cmake/simd_build.h.in). Throws
/// DeviceError if `present` lacks it, and ValueError if `limit`, LEVIN_CPU_CAPABILITY's value or empty, forbids it.
void require_only_instruction_set(std::string_view simd, const InstructionSets& present, std::string_view limit);

}  // namespace levin
