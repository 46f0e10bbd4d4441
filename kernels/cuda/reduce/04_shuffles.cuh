#pragma once
// Rung 4: warp shuffles.
// Idea: the lanes of a warp exchange registers; shared memory only holds one number per warp. Changes against rung 3:
// two barriers instead of nine. Bound: loads of at most 4 bytes per thread, one after the other.

#include "kernels/cuda/base/warp.h"
#include "kernels/cuda/reduce/lines.cuh"

namespace levin::kernels::cuda {

/// Combines one accumulator per thread of the block; every thread gets the result.
template <class Op, class Acc>
__device__ Acc combine_block(const Op& op, Acc own) {
  return block_reduce(own, Combine<Op>{op}, Op::template neutral<Acc>());
}

template <class Op, class T, class Acc>
__global__ void reduce_shuffles(Op op, ReduceLines<T, Acc> lines) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), n = lines.length_of(task);
  const T* const x = lines.piece(task);
  Acc own = Op::template neutral<Acc>();
  for (std::int64_t i = thread; i < n; i += kReduceThreads) own = op.combine(own, op.template map<Acc>(x[i]));
  own = combine_block(op, own);
  if (thread == 0) lines.store(task, own);
}

}  // namespace levin::kernels::cuda
