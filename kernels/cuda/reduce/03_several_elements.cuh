#pragma once
// Rung 3: several elements per thread.
// Idea: a block takes a long piece, and each thread first adds up every 256th element of it in a register. Changes
// against rung 2: the tree, which is the slow part, runs once for thousands of elements, and two launches suffice for
// any length. Bound: the loads are independent, but the tree's eight barriers stay.

#include "kernels/cuda/reduce/02_sequential.cuh"

namespace levin::kernels::cuda {

template <class Op, class T, class Acc>
__global__ void reduce_several(Op op, ReduceLines<T, Acc> lines) {
  LEVIN_SHARED(Acc, tile, kReduceThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), n = lines.length_of(task);
  const T* const x = lines.piece(task);
  Acc own = Op::template neutral<Acc>();
  for (std::int64_t i = thread; i < n; i += kReduceThreads) own = op.combine(own, op.template map<Acc>(x[i]));
  tile[thread] = own;
  fold_halves(op, &tile[0], thread);
  if (thread == 0) lines.store(task, tile[0]);
}

}  // namespace levin::kernels::cuda
