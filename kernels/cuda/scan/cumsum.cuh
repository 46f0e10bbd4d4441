#pragma once
// Cumulative sums. Along the last axis a block loops over a line in tiles: every warp scans its part of the tile with
// shuffles, the warps' totals are scanned, and the tile's total is carried on. If there are few, long lines, each is
// cut into pieces: a first pass computes their sums, a second scans these, a third scans the pieces from these values.
// Along other axes a thread loops down each line, next to its neighbours.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/warp.h"
#include "kernels/cuda/reduce/ops.cuh"

#include <levin/kernels/scan.h>

namespace levin::kernels::cuda {

inline constexpr int kScanThreads = 256, kScanWarps = kScanThreads / 32, kScanItems = 4;
inline constexpr int kScanTile = kScanThreads * kScanItems;

using reduction::RunningSum;

/// Lines (outer, n, inner) along n, cut into `cuts` pieces of `each` elements, a multiple of kScanTile. out may be x.
template <class T, class Out>
struct ScanLines {
  const T* x;
  Out* out;
  std::int64_t lines, n, inner, cuts, each;
  bool reverse;
  RunningSum<T>* sums;  ///< (lines, cuts + 1): the sum before each piece; null if cuts is 1

  __device__ std::int64_t at(std::int64_t line, std::int64_t i) const {
    return (line / inner * n + (reverse ? n - 1 - i : i)) * inner + line % inner;
  }
  __device__ RunningSum<T> load(std::int64_t line, std::int64_t i) const {
    return static_cast<RunningSum<T>>(convert<reduction::Accumulator<T>>(x[at(line, i)]));
  }
  __device__ void store(std::int64_t line, std::int64_t i, RunningSum<T> sum) const {
    out[at(line, i)] = convert<Out>(sum);
  }
  __device__ std::int64_t end_of(std::int64_t cut) const { return (cut + 1) * each < n ? (cut + 1) * each : n; }
};

/// Returns the sum of the lanes up to this one.
template <class Sum>
__device__ inline Sum scan_warp(Sum own) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int offset = 1; offset < 32; offset *= 2) {
    const Sum before = __shfl_up_sync(0xffffffffu, own, static_cast<unsigned>(offset));
    if (lane >= offset) own += before;
  }
  return own;
}

/// Replaces items (of a warp 32 kScanItems neighbours, item k of lane l is number 32 k + l) by their sums with all
/// items before them in the tile; adds the tile's total to `carry`.
template <class Sum>
__device__ inline void scan_tile(Sum (&items)[kScanItems], Sum& carry) {
  LEVIN_SHARED(Sum, totals, kScanWarps);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Sum before = Sum(0);  // sum before the warp
  LEVIN_PRAGMA_UNROLL
  for (int k = 0; k < kScanItems; ++k) {
    items[k] = before + scan_warp(items[k]);
    before = __shfl_sync(0xffffffffu, items[k], 31);
  }
  if (threadIdx.x % 32 == 0) totals[warp] = before;
  __syncthreads();
  Sum start = carry;
  for (int w = 0; w < warp; ++w) start += totals[w];
  for (int w = 0; w < kScanWarps; ++w) carry += totals[w];
  __syncthreads();
  LEVIN_PRAGMA_UNROLL
  for (int k = 0; k < kScanItems; ++k) items[k] += start;
}

/// Returns the index of this thread's item k in its tile.
__device__ inline int scan_place(int k) {
  const int thread = static_cast<int>(threadIdx.x);
  return thread / 32 * (32 * kScanItems) + k * 32 + thread % 32;
}

/// sums (lines, 1 + cuts) = 0 and the sum of each piece
template <class T, class Out>
__global__ void scan_piece_sums(ScanLines<T, Out> s) {
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), line = task / s.cuts, cut = task % s.cuts;
  RunningSum<T> own = RunningSum<T>(0);
  for (std::int64_t i = cut * s.each + static_cast<int>(threadIdx.x); i < s.end_of(cut); i += kScanThreads) {
    own += s.load(line, i);
  }
  own = block_reduce(own, Plus{}, RunningSum<T>(0));
  if (threadIdx.x != 0) return;
  RunningSum<T>* const sums = s.sums + line * (s.cuts + 1);
  if (cut == 0) sums[0] = RunningSum<T>(0);
  sums[cut + 1] = own;
}

/// Replaces each line of sums (lines, n) by its cumulative sum.
template <class Sum>
__global__ void scan_sums(Sum* sums, std::int64_t n) {
  Sum* const line = sums + static_cast<std::int64_t>(blockIdx.x) * n;
  Sum carry = Sum(0);
  for (std::int64_t first = 0; first < n; first += kScanTile) {
    Sum items[kScanItems];
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kScanItems; ++k) {
      const std::int64_t i = first + scan_place(k);
      items[k] = i < n ? line[i] : Sum(0);
    }
    scan_tile(items, carry);
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kScanItems; ++k) {
      const std::int64_t i = first + scan_place(k);
      if (i < n) line[i] = items[k];
    }
  }
}

template <class T, class Out>
__global__ void scan_pieces(ScanLines<T, Out> s) {
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), line = task / s.cuts, cut = task % s.cuts;
  RunningSum<T> carry = s.sums ? s.sums[line * (s.cuts + 1) + cut] : RunningSum<T>(0);
  const std::int64_t end = s.end_of(cut);
  for (std::int64_t first = cut * s.each; first < end; first += kScanTile) {
    RunningSum<T> items[kScanItems];
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kScanItems; ++k) {
      const std::int64_t i = first + scan_place(k);
      items[k] = i < end ? s.load(line, i) : RunningSum<T>(0);
    }
    scan_tile(items, carry);
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kScanItems; ++k) {
      const std::int64_t i = first + scan_place(k);
      if (i < end) s.store(line, i, items[k]);
    }
  }
}

/// One warp per line of few elements.
template <class T, class Out>
__global__ void scan_short(ScanLines<T, Out> s) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t line = global_thread() / 32;
  if (line >= s.lines) return;
  RunningSum<T> carry = RunningSum<T>(0);
  for (std::int64_t first = 0; first < s.n; first += 32) {
    const std::int64_t i = first + lane;
    const RunningSum<T> sum = carry + scan_warp(i < s.n ? s.load(line, i) : RunningSum<T>(0));
    if (i < s.n) s.store(line, i, sum);
    carry = __shfl_sync(0xffffffffu, sum, 31);
  }
}

/// One thread per line.
template <class T, class Out>
__global__ void scan_columns(ScanLines<T, Out> s) {
  const std::int64_t line = global_thread();
  if (line >= s.lines) return;
  RunningSum<T> sum = RunningSum<T>(0);
  for (std::int64_t i = 0; i < s.n; ++i) {
    sum += s.load(line, i);
    s.store(line, i, sum);
  }
}

}  // namespace levin::kernels::cuda
