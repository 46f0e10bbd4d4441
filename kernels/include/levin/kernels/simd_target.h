#pragma once
// Which instruction set the CPU kernels use on this machine.

namespace levin::kernels::cpu {

/// As Highway names it ("AVX3", "AVX2", "SSE4", ...). Results may differ between two of them by rounding.
const char* simd_target();

}  // namespace levin::kernels::cpu
