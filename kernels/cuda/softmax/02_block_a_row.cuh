#pragma once
// Rung 2: one block per row.
// Idea: one kernel, in which a block makes all three passes over its row. Changes against rung 1: one launch, nothing
// goes through scratch memory, and the second and third pass find the row in the cache. Bound: three passes, each of
// which waits for the reduction before.

#include "kernels/cuda/softmax/rows.cuh"

namespace levin::kernels::cuda {

template <class T, bool log>
__global__ void softmax_block_a_row(SoftmaxRows<T> s) {
  using C = ComputeType<T>;
  using S = WideSum<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  const T* const x = s.x + row * s.n;
  T* const out = s.out + row * s.n;
  C top = kNoMaximum<C>;
  for (std::int64_t i = thread; i < s.n; i += kSoftmaxThreads) top = Maximum{}(top, convert<C>(x[i]));
  top = block_reduce(top, Maximum{}, kNoMaximum<C>);
  S sum = S(0);
  for (std::int64_t i = thread; i < s.n; i += kSoftmaxThreads) sum += static_cast<S>(exp_of(convert<C>(x[i]) - top));
  const C last = last_of<log, C>(block_reduce(sum, Plus{}, S(0)));
  for (std::int64_t i = thread; i < s.n; i += kSoftmaxThreads) {
    out[i] = convert<T>(softmax_of<log>(convert<C>(x[i]), top, last));
  }
}

template <class T, bool log>
void run_softmax_block_a_row(const SoftmaxRows<T>& s, Stream& stream) {
  launch(softmax_block_a_row<T, log>,
         {.grid = static_cast<unsigned>(s.rows), .block = kSoftmaxThreads, .stream = stream}, s);
}

}  // namespace levin::kernels::cuda
