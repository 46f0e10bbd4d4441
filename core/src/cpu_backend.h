#pragma once
// The CPU backend, which every build has.

#include <levin/core/device.h>

namespace levin {

/// Returns the CPU backend; throws DeviceError if the processor lacks instruction sets, see require_instruction_sets().
DeviceBackend& cpu_backend();

/// Instruction sets of the kernels' baseline, which is SSE4 as Highway defines it.
struct InstructionSets {
  bool sse4_2 = true, pclmul = true, aes = true;
};

/// Throws DeviceError that names the missing instruction sets.
void require_instruction_sets(const InstructionSets& present);

}  // namespace levin
