#pragma once
// Integers wrap around, which signed arithmetic of C++ does not promise.

#include "kernels/cuda/base/cuda.h"

#include <cstdint>
#include <type_traits>

namespace levin::kernels::cuda::elementwise {

/// Arithmetic modulo 2^64 has the right low bits for every narrower type.
template <class T>
__device__ inline std::uint64_t bits_of(T x) {
  return static_cast<std::uint64_t>(x);
}

/// x < 0, of which compilers do not complain for unsigned types.
template <class T>
__device__ inline bool is_negative(T x) {
  if constexpr (std::is_signed_v<T>) {
    return x < 0;
  } else {
    return false;
  }
}

}  // namespace levin::kernels::cuda::elementwise
