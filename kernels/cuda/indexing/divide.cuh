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

/// Divides numbers below 2^31 by a divisor of at most 2^31 with one multiplication (Granlund and Montgomery, "Division
/// by invariant integers using multiplication", 1994).
struct Divider {
  std::uint32_t divisor = 1, multiplier = 1, shift = 0;

  Divider() = default;
  explicit Divider(std::uint32_t d) : divisor(d) {
    while ((std::uint64_t{1} << shift) < d) ++shift;
    multiplier = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - d) << 32) / d + 1);
  }
  __device__ std::uint32_t quotient(std::uint32_t n) const { return (__umulhi(n, multiplier) + n) >> shift; }
  __device__ std::uint32_t remainder(std::uint32_t n) const { return n - quotient(n) * divisor; }
};

}  // namespace levin::kernels::cuda
