#pragma once
// Rung 4: the row in registers.
// Idea: a thread keeps its elements of the row in an array with indices known at compile time, so that it stays in
// registers; maximum, sum and result are computed from there. Changes against rung 3: one read and one write, the
// minimum, and one exponential per element (two for 16-bit floats). Ships for rows that do not begin at multiples of 16
// bytes. Bound: loads of 2 or 4 bytes per lane; rows are limited to 512 threads of 32 elements.

#include "kernels/cuda/softmax/rows.cuh"

namespace levin::kernels::cuda {

/// Softmax of a row of n by a group of at least n / (kWidth * kPacks) threads. Pack p of thread r holds kWidth
/// neighbours from (p * threads + r) * kWidth; with kWidth above 1, n and the addresses are multiples of it. 16-bit
/// elements stay in packs, and their exponentials are computed twice: as floats they would need twice the registers,
/// and fewer rows would be in flight.
template <class Group, class T, int kWidth, int kPacks, bool log>
__device__ inline void softmax_in_registers(const T* x, T* out, int n) {
  using C = ComputeType<T>;
  using S = WideSum<T>;
  using Elements = Pack<T, kWidth>;
  constexpr bool twice = sizeof(T) == 2;
  const int first = Group::rank() * kWidth, step = Group::size() * kWidth;
  Elements packs[kPacks];
  // All loads come before the first use: in one loop with it, ptxas makes each load wait for the previous one.
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    if (first + p * step < n) packs[p] = vector_at<Elements>(x + first + p * step);
  }
  C top = kNoMaximum<C>;
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    if (first + p * step >= n) continue;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) top = LargerNumber{}(top, convert<C>(packs[p][i]));
  }
  top = Group::reduce(top, LargerNumber{}, kNoMaximum<C>);
  S sum = S(0);
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    if (first + p * step >= n) continue;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const C e = exp_below<T>(convert<C>(packs[p][i]), top);
      sum += static_cast<S>(e);
      if constexpr (!log && !twice) packs[p][i] = e;
    }
  }
  const C last = last_of<log, C>(Group::reduce(sum, Plus{}, S(0)));
  if constexpr (twice) top = ptx::opaque(top);
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int at = first + p * step;
    if (at >= n) continue;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const C value = convert<C>(packs[p][i]);
      packs[p][i] = convert<T>(log ? value - top - last : (twice ? exp_below<T>(value, top) : value) * last);
    }
    vector_at<Elements>(out + at) = packs[p];
  }
}

inline constexpr int kMostSoftmaxThreads = 512;
/// Maximum number of elements per thread.
template <class T>
inline constexpr int kMostSoftmaxElements = sizeof(T) == 8 ? 16 : 32;
template <class T>
inline constexpr std::int64_t kMostSoftmaxRow = std::int64_t{kMostSoftmaxThreads} * kMostSoftmaxElements<T>;

/// Returns the threads of a block for rows of n, and the number of elements (8, 16 or 32) of each thread.
template <class T>
int softmax_threads(std::int64_t n) {
  return n <= 256 * kMostSoftmaxElements<T> ? 256 : kMostSoftmaxThreads;
}
inline int softmax_elements(std::int64_t n, int threads) {
  return n <= 8 * std::int64_t{threads} ? 8 : n <= 16 * std::int64_t{threads} ? 16 : 32;
}

template <class T, int kElements, bool log>
__global__ void __launch_bounds__(kMostSoftmaxThreads) softmax_registers(SoftmaxRows<T> s) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  softmax_in_registers<BlockGroup, T, 1, kElements, log>(s.x + row * s.n, s.out + row * s.n, static_cast<int>(s.n));
}

template <class T, bool log>
void run_softmax_registers(const SoftmaxRows<T>& s, Stream& stream) {
  const int threads = softmax_threads<T>(s.n), elements = softmax_elements(s.n, threads);
  const auto kernel = elements == 8    ? softmax_registers<T, 8, log>
                      : elements == 16 ? softmax_registers<T, 16, log>
                                       : softmax_registers<T, kMostSoftmaxElements<T>, log>;
  launch(kernel, {.grid = static_cast<unsigned>(s.rows), .block = static_cast<unsigned>(threads), .stream = stream}, s);
}

}  // namespace levin::kernels::cuda
