#pragma once
// Cumulative sums and products (Op of kernels/src/reductions.h). Along the last axis a block loops over a line in
// tiles: every warp scans its part of the tile with shuffles, the warps' totals are scanned, and the tile's total is
// carried on. If there are few, long lines, each is cut into pieces: a first pass computes their totals, a second scans
// these, a third scans the pieces from these values. Along other axes a thread loops down each line, next to its
// neighbours.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/warp.h"
#include "kernels/cuda/reduce/ops.cuh"

#include <levin/kernels/scan.h>

namespace levin::kernels::cuda {

inline constexpr int kScanThreads = 256, kScanWarps = kScanThreads / 32, kScanItems = 4;
inline constexpr int kScanTile = kScanThreads * kScanItems;

using reduction::Running;

/// Lines (outer, n, inner) along n, cut into `cuts` pieces of `each` elements, a multiple of kScanTile. out may be x.
template <class T, class Out>
struct ScanLines {
  const T* x;
  Out* out;
  std::int64_t lines, n, inner, cuts, each;
  bool reverse;
  Running<T>* totals;  ///< (lines, cuts + 1): the total before each piece; null if cuts is 1

  __device__ std::int64_t at(std::int64_t line, std::int64_t i) const {
    return (line / inner * n + (reverse ? n - 1 - i : i)) * inner + line % inner;
  }
  __device__ Running<T> load(std::int64_t line, std::int64_t i) const {
    return static_cast<Running<T>>(convert<reduction::Accumulator<T>>(x[at(line, i)]));
  }
  __device__ void store(std::int64_t line, std::int64_t i, Running<T> total) const {
    out[at(line, i)] = convert<Out>(total);
  }
  __device__ std::int64_t end_of(std::int64_t cut) const { return (cut + 1) * each < n ? (cut + 1) * each : n; }
};

/// Returns the total of the lanes up to this one.
template <class Op, class Acc>
__device__ inline Acc scan_warp(Acc own) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int offset = 1; offset < 32; offset *= 2) {
    const Acc before = __shfl_up_sync(0xffffffffu, own, static_cast<unsigned>(offset));
    if (lane >= offset) own = Op::combine(before, own);
  }
  return own;
}

/// Combines items (of a warp 32 kScanItems neighbours, item k of lane l is number 32 k + l) with `carry` and all items
/// before them in the tile; combines `carry` with the tile's total.
template <class Op, class Acc>
__device__ inline void scan_tile(Acc (&items)[kScanItems], Acc& carry) {
  LEVIN_SHARED(Acc, totals, kScanWarps);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Acc before = Op::template neutral<Acc>();  // the total before the item's 32 neighbours
  LEVIN_PRAGMA_UNROLL
  for (int k = 0; k < kScanItems; ++k) {
    items[k] = Op::combine(before, scan_warp<Op>(items[k]));
    before = __shfl_sync(0xffffffffu, items[k], 31);
  }
  if (threadIdx.x % 32 == 0) totals[warp] = before;
  __syncthreads();
  Acc start = carry;
  for (int w = 0; w < warp; ++w) start = Op::combine(start, totals[w]);
  for (int w = 0; w < kScanWarps; ++w) carry = Op::combine(carry, totals[w]);
  __syncthreads();
  LEVIN_PRAGMA_UNROLL
  for (int k = 0; k < kScanItems; ++k) items[k] = Op::combine(start, items[k]);
}

/// Returns the index of this thread's item k in its tile.
__device__ inline int scan_place(int k) {
  const int thread = static_cast<int>(threadIdx.x);
  return thread / 32 * (32 * kScanItems) + k * 32 + thread % 32;
}

/// totals (lines, 1 + cuts) = the neutral element and the total of each piece
template <class Op, class T, class Out>
__global__ void scan_piece_totals(ScanLines<T, Out> s) {
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), line = task / s.cuts, cut = task % s.cuts;
  constexpr Running<T> neutral = Op::template neutral<Running<T>>();
  Running<T> own = neutral;
  for (std::int64_t i = cut * s.each + static_cast<int>(threadIdx.x); i < s.end_of(cut); i += kScanThreads) {
    own = Op::combine(own, s.load(line, i));
  }
  own = block_reduce(own, Combine<Op>{}, neutral);
  if (threadIdx.x != 0) return;
  Running<T>* const totals = s.totals + line * (s.cuts + 1);
  if (cut == 0) totals[0] = neutral;
  totals[cut + 1] = own;
}

/// Scans each line of totals (lines, n) in place.
template <class Op, class Acc>
__global__ void scan_totals(Acc* totals, std::int64_t n) {
  Acc* const line = totals + static_cast<std::int64_t>(blockIdx.x) * n;
  Acc carry = Op::template neutral<Acc>();
  for (std::int64_t first = 0; first < n; first += kScanTile) {
    Acc items[kScanItems];
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kScanItems; ++k) {
      const std::int64_t i = first + scan_place(k);
      items[k] = i < n ? line[i] : Op::template neutral<Acc>();
    }
    scan_tile<Op>(items, carry);
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kScanItems; ++k) {
      const std::int64_t i = first + scan_place(k);
      if (i < n) line[i] = items[k];
    }
  }
}

template <class Op, class T, class Out>
__global__ void scan_pieces(ScanLines<T, Out> s) {
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), line = task / s.cuts, cut = task % s.cuts;
  constexpr Running<T> neutral = Op::template neutral<Running<T>>();
  Running<T> carry = s.totals ? s.totals[line * (s.cuts + 1) + cut] : neutral;
  const std::int64_t end = s.end_of(cut);
  for (std::int64_t first = cut * s.each; first < end; first += kScanTile) {
    Running<T> items[kScanItems];
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kScanItems; ++k) {
      const std::int64_t i = first + scan_place(k);
      items[k] = i < end ? s.load(line, i) : neutral;
    }
    scan_tile<Op>(items, carry);
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kScanItems; ++k) {
      const std::int64_t i = first + scan_place(k);
      if (i < end) s.store(line, i, items[k]);
    }
  }
}

/// One warp per line of few elements.
template <class Op, class T, class Out>
__global__ void scan_short(ScanLines<T, Out> s) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t line = global_thread() / 32;
  if (line >= s.lines) return;
  constexpr Running<T> neutral = Op::template neutral<Running<T>>();
  Running<T> carry = neutral;
  for (std::int64_t first = 0; first < s.n; first += 32) {
    const std::int64_t i = first + lane;
    const Running<T> total = Op::combine(carry, scan_warp<Op>(i < s.n ? s.load(line, i) : neutral));
    if (i < s.n) s.store(line, i, total);
    carry = __shfl_sync(0xffffffffu, total, 31);
  }
}

/// One thread per line.
template <class Op, class T, class Out>
__global__ void scan_columns(ScanLines<T, Out> s) {
  const std::int64_t line = global_thread();
  if (line >= s.lines) return;
  Running<T> total = Op::template neutral<Running<T>>();
  for (std::int64_t i = 0; i < s.n; ++i) {
    total = Op::combine(total, s.load(line, i));
    s.store(line, i, total);
  }
}

}  // namespace levin::kernels::cuda
