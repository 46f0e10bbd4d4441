#pragma once
// The threads that process one line together: a thread, a warp or a block. Kernels that are templates of a group loop
// over their lines by `for (line = Group::number(); line < lines; line += Group::count())`, which is the same for all
// threads of the group.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/warp.h"

namespace levin::kernels::cuda {

struct ThreadGroup {
  __device__ static int rank() { return 0; }
  __device__ static int size() { return 1; }
  __device__ static std::int64_t number() { return global_thread(); }
  __device__ static std::int64_t count() { return grid_threads(); }
  template <class T, class Op>
  __device__ static T reduce(T value, Op, T) {
    return value;
  }
};

struct WarpGroup {
  __device__ static int rank() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int size() { return 32; }
  __device__ static std::int64_t number() { return global_thread() / 32; }
  __device__ static std::int64_t count() { return grid_threads() / 32; }
  template <class T, class Op>
  __device__ static T reduce(T value, Op op, T) {
    return warp_reduce(value, op);
  }
};

struct BlockGroup {
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  __device__ static int size() { return static_cast<int>(blockDim.x); }
  __device__ static std::int64_t number() { return static_cast<std::int64_t>(blockIdx.x); }
  __device__ static std::int64_t count() { return static_cast<std::int64_t>(gridDim.x); }
  template <class T, class Op>
  __device__ static T reduce(T value, Op op, T identity) {
    return block_reduce(value, op, identity);
  }
};

/// Returns the number of blocks of `threads` for `lines` groups.
template <class Group>
inline unsigned blocks_of(std::int64_t lines, int threads) {
  if (lines == 0) return 0;
  if constexpr (std::is_same_v<Group, ThreadGroup>) return blocks_for(lines, threads);
  if constexpr (std::is_same_v<Group, WarpGroup>) return blocks_for(lines * 32, threads);
  return blocks_for(lines, 1);
}

}  // namespace levin::kernels::cuda
