#pragma once
// Indices of extrema. A candidate is a value with its index; of two candidates the better one wins, NaN wins against
// any number, and among equals the lower index wins. That order is total, so any tree gives the same result.

#include "kernels/cuda/reduce/group.cuh"
#include "kernels/cuda/reduce/ops.cuh"

#include <levin/kernels/scan.h>

namespace levin::kernels::cuda {

/// The representation in which values are compared: 4 or 8 bytes, so that lanes can shuffle them.
template <class T>
using Comparable =
    std::conditional_t<kIsFloating<T>, ComputeType<T>, std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>>;

template <class V>
struct Candidate {
  V value;
  std::int64_t place;  ///< negative for none
};

template <bool largest, class V>
__device__ inline Candidate<V> better_of(const Candidate<V>& a, const Candidate<V>& b) {
  if (a.place < 0) return b;
  if (b.place < 0) return a;
  if (reduction::beats<largest>(a.value, b.value)) return a;
  if (reduction::beats<largest>(b.value, a.value)) return b;
  return a.place < b.place ? a : b;
}

/// Reduces each `lanes` neighbours to their best, which all of them get.
template <bool largest, class V>
__device__ Candidate<V> best_of_lanes(Candidate<V> own, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    Candidate<V> other;
    other.value = __shfl_xor_sync(0xffffffffu, own.value, offset);
    other.place = __shfl_xor_sync(0xffffffffu, own.place, offset);
    own = better_of<largest>(own, other);
  }
  return own;
}

/// Lines (outer, n, inner) of x along n, cut into `cuts` pieces of `each` elements.
template <class T>
struct ArgLines {
  const T* x;
  T* values;              ///< (outer, inner) or null
  std::int64_t* indices;  ///< (outer, inner)
  std::int64_t lines, n, inner, cuts, each;
  std::int64_t* partial;  ///< (lines, cuts) indices of each piece's best; null if cuts is 1

  __device__ const T* line(std::int64_t i) const { return x + i / inner * n * inner + i % inner; }
  __device__ Candidate<Comparable<T>> at(std::int64_t i, std::int64_t place) const {
    return {convert<Comparable<T>>(line(i)[place * inner]), place};
  }
  __device__ void store(std::int64_t i, std::int64_t place) const {
    indices[i] = place;
    if (values) values[i] = line(i)[place * inner];
  }
};

/// `lanes` neighbours, a power of two up to 32, search one line.
template <bool largest, class T>
__global__ void arg_short(ArgLines<T> a, int lanes) {
  using V = Comparable<T>;
  const std::int64_t i = global_thread() / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  Candidate<V> best{V(0), -1};
  if (i < a.lines) {
    for (std::int64_t k = lane; k < a.n; k += lanes) best = better_of<largest>(best, a.at(i, k));
  }
  best = best_of_lanes<largest>(best, lanes);
  if (i < a.lines && lane == 0) a.store(i, best.place);
}

inline constexpr int kArgThreads = 256;

/// Returns the block's best to thread 0.
template <bool largest, class V>
__device__ Candidate<V> best_of_block(Candidate<V> own) {
  LEVIN_SHARED(V, values, kArgThreads / 32);
  LEVIN_SHARED(std::int64_t, places, kArgThreads / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  own = best_of_lanes<largest>(own, 32);
  if (lane == 0) values[warp] = own.value, places[warp] = own.place;
  __syncthreads();
  own = lane < kArgThreads / 32 ? Candidate<V>{values[lane], places[lane]} : Candidate<V>{V(0), -1};
  return best_of_lanes<largest>(own, 32);
}

/// One block searches a piece of a line.
template <bool largest, class T>
__global__ void arg_pieces(ArgLines<T> a) {
  using V = Comparable<T>;
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), i = task / a.cuts, begin = task % a.cuts * a.each;
  const std::int64_t end = begin + a.each < a.n ? begin + a.each : a.n;
  Candidate<V> best{V(0), -1};
  for (std::int64_t k = begin + static_cast<int>(threadIdx.x); k < end; k += kArgThreads) {
    best = better_of<largest>(best, a.at(i, k));
  }
  best = best_of_block<largest>(best);
  if (threadIdx.x != 0) return;
  if (a.partial) {
    a.partial[task] = best.place;
  } else {
    a.store(i, best.place);
  }
}

/// One block chooses among the pieces of a line.
template <bool largest, class T>
__global__ void arg_combine(ArgLines<T> a) {
  using V = Comparable<T>;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x);
  Candidate<V> best{V(0), -1};
  for (std::int64_t cut = static_cast<int>(threadIdx.x); cut < a.cuts; cut += kArgThreads) {
    best = better_of<largest>(best, a.at(i, a.partial[i * a.cuts + cut]));
  }
  best = best_of_block<largest>(best);
  if (threadIdx.x == 0) a.store(i, best.place);
}

}  // namespace levin::kernels::cuda
