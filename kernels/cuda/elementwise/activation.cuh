#pragma once
// Shared by activations and their gradients.

#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

#include <numbers>

namespace levin::kernels::cuda::elementwise {

inline constexpr double kHalfSqrt = 0.5 * std::numbers::sqrt2;                            // 1 / sqrt(2)
inline constexpr double kDensity = 0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // 1 / sqrt(2 pi)
inline constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;      // sqrt(2 / pi)
inline constexpr double kTanhCubic = 0.044715;

/// Standard normal distribution function.
template <class C>
__device__ inline C normal_cdf(C x) {
  return math::fma(C(0.5), math::erf(x * C(kHalfSqrt)), C(0.5));
}

template <class C>
__device__ inline C tanh_of_gelu(C x) {
  return math::tanh(C(kTanhScale) * x * math::fma(C(kTanhCubic), x * x, C(1)));
}

}  // namespace levin::kernels::cuda::elementwise
