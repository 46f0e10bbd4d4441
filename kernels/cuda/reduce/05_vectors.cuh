#pragma once
// Rung 5: loads of 16 bytes, four in flight.
// Idea: a thread loads four packs of 16 bytes before it adds up any of them, into four independent accumulators.
// Changes against rung 4: a quarter of the load instructions (an eighth for 16-bit floats), and the latency of memory
// is paid once for 64 bytes per thread. Lines that do not begin at a multiple of 16 bytes are read one element at a
// time, in the same order. Bound: memory bandwidth.

#include "kernels/cuda/reduce/04_shuffles.cuh"

namespace levin::kernels::cuda {

/// Returns the pack with its elements [0, left), the others zero.
template <class T, int N>
__device__ inline Pack<T, N> load_some(const T* x, std::int64_t left, bool aligned) {
  if (aligned && left >= N) return pack_at<N>(x);
  Pack<T, N> pack{};
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < N; ++i) {
    if (i < left) pack[i] = x[i];
  }
  return pack;
}

template <class Op, class T, class Acc>
__global__ void reduce_vectors(Op op, ReduceLines<T, Acc> lines) {
  constexpr int kWidth = 16 / static_cast<int>(sizeof(T)), kPacks = 4;
  constexpr int kSums = kWidth < 4 ? kWidth : 4;
  constexpr std::int64_t kStep = std::int64_t{kReduceThreads} * kWidth;
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), n = lines.length_of(task);
  const T* const x = lines.piece(task);
  const bool aligned = reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  Acc sums[kSums];
  LEVIN_PRAGMA_UNROLL
  for (int s = 0; s < kSums; ++s) sums[s] = Op::template neutral<Acc>();
  for (std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kWidth; first < n; first += kPacks * kStep) {
    Pack<T, kWidth> packs[kPacks];
    LEVIN_PRAGMA_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      packs[p] = load_some<T, kWidth>(x + first + p * kStep, n - first - p * kStep, aligned);
    }
    LEVIN_PRAGMA_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        if (first + p * kStep + i < n) sums[i % kSums] = op.combine(sums[i % kSums], op.template map<Acc>(packs[p][i]));
      }
    }
  }
  for (int s = 1; s < kSums; ++s) sums[0] = op.combine(sums[0], sums[s]);
  const Acc all = combine_block(op, sums[0]);
  if (threadIdx.x == 0) lines.store(task, all);
}

}  // namespace levin::kernels::cuda
