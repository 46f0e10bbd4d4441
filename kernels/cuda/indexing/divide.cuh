#pragma once
// Coordinates from element indices: 64-bit division is slow on the device, and almost never needed.

#include "kernels/cuda/base/cuda.h"

namespace levin::kernels::cuda {

struct Division {
  std::int64_t quotient, remainder;
};

/// Divides non-negative numbers; in 32 bits if both fit.
__device__ inline Division divide(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) {
    const auto low_a = static_cast<std::uint32_t>(a), low_b = static_cast<std::uint32_t>(b);
    const std::uint32_t quotient = low_a / low_b;
    return {quotient, low_a - quotient * low_b};
  }
  const std::int64_t quotient = a / b;
  return {quotient, a - quotient * b};
}

}  // namespace levin::kernels::cuda
