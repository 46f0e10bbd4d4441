#pragma once
// Reductions over the lanes of a warp and the threads of a block in a fixed order, so that the bits are the same every
// time.

#include "kernels/cuda/base/cuda.h"
#include "kernels/src/reductions.h"

namespace levin::kernels::cuda {

struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
/// Returns NaN if either is NaN.
struct Maximum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return reduction::Max::combine(a, b);
  }
};

/// Reduces over the warp; every lane gets the result. All 32 lanes must take part.
template <class T, class Op>
__device__ inline T warp_reduce(T value, Op op) {
  LEVIN_PRAGMA_UNROLL
  for (int offset = 16; offset > 0; offset /= 2) value = op(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

/// Reduces over a one-dimensional block of whole warps, at most 1024 threads; every thread gets the result. `identity`
/// is the neutral element of op. Ends with a barrier, so that calls may follow one another.
template <class T, class Op>
__device__ inline T block_reduce(T value, Op op, T identity) {
  LEVIN_SHARED(T, partial, 32);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  value = warp_reduce(value, op);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = warp_reduce(lane < warps ? partial[lane] : identity, op);
  __syncthreads();
  return value;
}

}  // namespace levin::kernels::cuda
