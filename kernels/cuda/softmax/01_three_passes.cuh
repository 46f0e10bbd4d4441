#pragma once
// Rung 1: three passes.
// Idea: the definition as three kernels: the maximum of each row, the sum of its exponentials, then every element. The
// maximum and the sum go through global memory. Bound: bandwidth, as the row is read three times from memory and the
// exponentials are computed twice.

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/softmax/rows.cuh"

namespace levin::kernels::cuda {

template <class T>
__global__ void softmax_maxima(SoftmaxRows<T> s, ComputeType<T>* tops) {
  using C = ComputeType<T>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  C top = kNoMaximum<C>;
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < s.n; i += kSoftmaxThreads) {
    top = Maximum{}(top, convert<C>(s.x[row * s.n + i]));
  }
  top = block_reduce(top, Maximum{}, kNoMaximum<C>);
  if (threadIdx.x == 0) tops[row] = top;
}

template <class T>
__global__ void softmax_sums(SoftmaxRows<T> s, const ComputeType<T>* tops, WideSum<T>* sums) {
  using C = ComputeType<T>;
  using S = WideSum<T>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  S sum = S(0);
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < s.n; i += kSoftmaxThreads) {
    sum += static_cast<S>(exp_of(convert<C>(s.x[row * s.n + i]) - tops[row]));
  }
  sum = block_reduce(sum, Plus{}, S(0));
  if (threadIdx.x == 0) sums[row] = sum;
}

template <class T, bool log>
__global__ void softmax_scale(SoftmaxRows<T> s, const ComputeType<T>* tops, const WideSum<T>* sums) {
  using C = ComputeType<T>;
  for (std::int64_t i = global_thread(); i < s.rows * s.n; i += grid_threads()) {
    const std::int64_t row = i / s.n;
    s.out[i] = convert<T>(softmax_of<log>(convert<C>(s.x[i]), tops[row], last_of<log, C>(sums[row])));
  }
}

template <class T, bool log>
void run_softmax_three_passes(const SoftmaxRows<T>& s, Stream& stream) {
  Scratch<ComputeType<T>> tops(stream, s.rows);
  Scratch<WideSum<T>> sums(stream, s.rows);
  const LaunchConfig rows{.grid = static_cast<unsigned>(s.rows), .block = kSoftmaxThreads, .stream = stream};
  launch(softmax_maxima<T>, rows, s, tops.get());
  launch(softmax_sums<T>, rows, s, tops.get(), sums.get());
  launch(softmax_scale<T, log>,
         {.grid = blocks_for(s.rows * s.n, kSoftmaxThreads), .block = kSoftmaxThreads, .stream = stream}, s, tops.get(),
         sums.get());
}

}  // namespace levin::kernels::cuda
