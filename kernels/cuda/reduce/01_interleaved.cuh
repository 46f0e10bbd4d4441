#pragma once
// Rung 1: a tree in shared memory.
// Idea: each thread loads one element; then threads whose index is a multiple of 2, 4, 8, ... add the element at
// distance 1, 2, 4, ... A launch divides the length by 256, so long lines take several. Bound: every step leaves half
// of the remaining threads of each warp idle, so that every warp goes through nearly every step.

#include "kernels/cuda/reduce/lines.cuh"

namespace levin::kernels::cuda {

template <class Op, class T, class Acc>
__global__ void reduce_interleaved(Op op, ReduceLines<T, Acc> lines) {
  LEVIN_SHARED(Acc, tile, kReduceThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x);
  tile[thread] =
      thread < lines.length_of(task) ? op.template map<Acc>(lines.piece(task)[thread]) : Op::template neutral<Acc>();
  __syncthreads();
  for (int step = 1; step < kReduceThreads; step *= 2) {
    if (thread % (2 * step) == 0) tile[thread] = op.combine(tile[thread], tile[thread + step]);
    __syncthreads();
  }
  if (thread == 0) lines.store(task, tile[0]);
}

}  // namespace levin::kernels::cuda
