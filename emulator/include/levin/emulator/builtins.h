#pragma once
// The built-ins of CUDA C++ under their own names: qualifiers, indices, barriers, warp functions, atomics.

#include <levin/emulator/atomics.h>
#include <levin/emulator/device_math.h>
#include <levin/emulator/execution.h>
#include <levin/emulator/vector_types.h>
#include <levin/emulator/warp_functions.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)
#define __align__(n) alignas(n)

/// Indices of the running thread. The scheduler sets them whenever a thread resumes.
extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

inline void __syncthreads(levin::emulator::Site site = levin::emulator::Site::current()) {
  levin::emulator::block_barrier("__syncthreads", 0, 0, site);
}
/// Barriers that return the number of threads with a nonzero predicate, whether all have one, or whether any has one.
int __syncthreads_count(int predicate, levin::emulator::Site site = levin::emulator::Site::current());
int __syncthreads_and(int predicate, levin::emulator::Site site = levin::emulator::Site::current());
int __syncthreads_or(int predicate, levin::emulator::Site site = levin::emulator::Site::current());

// A block's threads run on one host thread; sequentially consistent fences order the writes that blocks see of each
// other.
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
