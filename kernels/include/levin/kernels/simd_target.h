#pragma once
// The instruction set that the CPU kernels use on this machine.

namespace levin::kernels::cpu {

/// Returns Highway's name for it ("AVX3", "AVX2", "SSE4", ...). Results of two instruction sets may differ by rounding.
const char* simd_target();

}  // namespace levin::kernels::cpu
