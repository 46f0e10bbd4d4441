#pragma once
// Rung 3: maximum and sum in one pass.
// Idea: every thread keeps the maximum so far and the sum of exponentials relative to it; a new maximum rescales the
// sum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). Changes against rung 2: the row is
// read twice instead of three times. Ships for rows that fit in no register file. Bound: the second pass, which for
// long rows reads from memory again.

#include "kernels/cuda/softmax/rows.cuh"

namespace levin::kernels::cuda {

/// The maximum of some elements and the sum of exp(x - top).
template <class C, class S>
struct OnlineSum {
  C top = kNoMaximum<C>;
  S sum = S(0);

  __device__ void add(C x) {
    if (x > top) {
      sum = sum * static_cast<S>(exp_of(top - x)) + S(1) + static_cast<S>(x - x);  // NaN for an infinity
      top = x;
    } else if (x > kNoMaximum<C> || x != x) {  // a NaN stays in the sum
      sum += static_cast<S>(exp_of(x - top));
    }
  }
  __device__ void add(const OnlineSum& other) {
    if (other.top > top) {
      sum = sum * static_cast<S>(exp_of(top - other.top)) + other.sum;
      top = other.top;
    } else if (other.top > kNoMaximum<C>) {
      sum += other.sum * static_cast<S>(exp_of(other.top - top));
    } else {
      sum += other.sum;
    }
  }
};

/// Combines over all threads of the group, which all get the same result.
template <class Group, class C, class S>
__device__ OnlineSum<C, S> combine_online(const OnlineSum<C, S>& own) {
  OnlineSum<C, S> all;
  all.top = Group::reduce(own.top, Maximum{}, kNoMaximum<C>);
  const S scaled = own.top == all.top ? own.sum : own.sum * static_cast<S>(exp_of(own.top - all.top));
  all.sum = Group::reduce(scaled, Plus{}, S(0));
  return all;
}

template <class T, bool log>
__global__ void softmax_online(SoftmaxRows<T> s) {
  using C = ComputeType<T>;
  using S = WideSum<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  const T* const x = s.x + row * s.n;
  T* const out = s.out + row * s.n;
  OnlineSum<C, S> own;
  for (std::int64_t i = thread; i < s.n; i += kSoftmaxThreads) own.add(convert<C>(x[i]));
  const OnlineSum<C, S> all = combine_online<BlockGroup>(own);
  const C last = last_of<log, C>(all.sum);
  for (std::int64_t i = thread; i < s.n; i += kSoftmaxThreads) {
    out[i] = convert<T>(softmax_of<log>(convert<C>(x[i]), all.top, last));
  }
}

template <class T, bool log>
void run_softmax_online(const SoftmaxRows<T>& s, Stream& stream) {
  launch(softmax_online<T, log>, {.grid = static_cast<unsigned>(s.rows), .block = kSoftmaxThreads, .stream = stream},
         s);
}

}  // namespace levin::kernels::cuda
