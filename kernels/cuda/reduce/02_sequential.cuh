#pragma once
// Rung 2: sequential addressing.
// Idea: the first half of the threads adds the second half, then the first quarter the second quarter, and so on.
// Changes against rung 1: the active threads are neighbours, so whole warps finish early. In neither rung do two
// threads of a warp access the same bank. Bound: one load per thread, and eight barriers for 256 elements.

#include "kernels/cuda/reduce/lines.cuh"

namespace levin::kernels::cuda {

/// Combines tile[0, kReduceThreads) into tile[0]; all threads must have written their element.
template <class Op, class Acc>
__device__ void fold_halves(const Op& op, Acc* tile, int thread) {
  __syncthreads();
  for (int half = kReduceThreads / 2; half > 0; half /= 2) {
    if (thread < half) tile[thread] = op.combine(tile[thread], tile[thread + half]);
    __syncthreads();
  }
}

template <class Op, class T, class Acc>
__global__ void reduce_sequential(Op op, ReduceLines<T, Acc> lines) {
  LEVIN_SHARED(Acc, tile, kReduceThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x);
  tile[thread] =
      thread < lines.length_of(task) ? op.template map<Acc>(lines.piece(task)[thread]) : Op::template neutral<Acc>();
  fold_halves(op, &tile[0], thread);
  if (thread == 0) lines.store(task, tile[0]);
}

}  // namespace levin::kernels::cuda
