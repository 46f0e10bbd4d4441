#pragma once
// The CPU backend, which every build has.

#include <levin/core/device.h>

#include <string_view>

namespace levin {

/// Returns the CPU backend; throws DeviceError if the processor lacks instruction sets, see require_instruction_sets().
DeviceBackend& cpu_backend();

/// Instruction sets of a processor. The first three are the kernels' baseline, which is SSE4 as Highway defines it; a
/// build for one processor (LEVIN_SIMD=native) may need the others.
struct InstructionSets {
  bool sse4_2 = true, pclmul = true, aes = true, avx2 = true, avx512 = true;
};

/// Throws DeviceError that names the instruction sets which `present` lacks and the kernels need. `simd` is the build's
/// LEVIN_SIMD (cmake/simd_build.h.in). `limit` is LEVIN_CPU_CAPABILITY, or empty; ValueError if it forbids the only
/// instruction set of such a build.
void require_instruction_sets(const InstructionSets& present, std::string_view simd, std::string_view limit = "");

}  // namespace levin
