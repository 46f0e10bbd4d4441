#pragma once
// Radix sort with digits of 8 bits, lowest first. A line is cut into tiles; each pass counts the digits of every tile,
// adds up the counts of the tiles before, and moves every entry to its position in the order of the tile. The sort is
// therefore stable, and no step depends on the order of the blocks.

#include "kernels/cuda/scan/cumulative.cuh"
#include "kernels/cuda/sort/keys.cuh"

namespace levin::kernels::cuda {

inline constexpr int kDigits = 256, kSortThreads = 256, kSortWarps = kSortThreads / 32, kSortItems = 8;
inline constexpr int kSortTile = kSortThreads * kSortItems;

/// The input of the first pass, read from the tensor.
template <class T>
struct TensorEntries {
  using Key = SortKey<T>;
  SortLines<T> s;
  __device__ Key key(std::int64_t line, std::int64_t i) const { return s.key(line, i); }
  __device__ std::uint32_t place(std::int64_t, std::int64_t i) const { return static_cast<std::uint32_t>(i); }
};

/// Output of a pass and input of the next one; (lines, n) each.
template <class K>
struct BufferedEntries {
  using Key = K;
  Key* keys;
  std::uint32_t* places;
  std::int64_t n;
  __device__ Key key(std::int64_t line, std::int64_t i) const { return keys[line * n + i]; }
  __device__ std::uint32_t place(std::int64_t line, std::int64_t i) const { return places[line * n + i]; }
};

struct RadixPass {
  std::int64_t n, tiles;
  int shift;
  std::uint32_t* counts;  ///< (lines, kDigits, tiles): entries of a digit in a tile, then in all tiles before
  std::uint32_t* totals;  ///< (lines, kDigits)

  template <class Key>
  __device__ int digit(Key key) const {
    return static_cast<int>(key >> shift & Key{kDigits - 1});
  }
};

/// Counts the digits, one block per tile.
template <class Source>
__global__ void radix_count(Source from, RadixPass p) {
  LEVIN_SHARED(std::uint32_t, histogram, kDigits);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.x) / p.tiles;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) % p.tiles, first = tile * kSortTile;
  histogram[thread] = 0;
  __syncthreads();
  for (int k = 0; k < kSortItems; ++k) {
    const std::int64_t i = first + k * kSortThreads + thread;
    if (i < p.n) atomicAdd(&histogram[p.digit(from.key(line, i))], 1u);
  }
  __syncthreads();
  p.counts[(line * kDigits + thread) * p.tiles + tile] = histogram[thread];
}

/// A warp computes the prefix sums of a digit's counts over the tiles; `digits` counts those of all lines together.
__global__ void radix_offsets(RadixPass p, std::int64_t digits) {
  constexpr int kItems = 4;  // loads in flight
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t digit = global_thread() / 32;
  if (digit >= digits) return;
  std::uint32_t* const counts = p.counts + digit * p.tiles;
  std::uint32_t before = 0;
  for (std::int64_t first = lane; first < p.tiles + lane; first += 32 * kItems) {
    std::uint32_t own[kItems];
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kItems; ++k) own[k] = first + 32 * k < p.tiles ? counts[first + 32 * k] : 0u;
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kItems; ++k) {
      const std::uint32_t sum = scan_warp<reduction::Sum>(own[k]);
      if (first + 32 * k < p.tiles) counts[first + 32 * k] = before + sum - own[k];
      before += __shfl_sync(0xffffffffu, sum, 31);
    }
  }
  if (lane == 0) p.totals[digit] = before;
}

/// Returns the sum of the values of all threads of lower index in the block.
__device__ inline std::uint32_t sum_before(std::uint32_t own) {
  LEVIN_SHARED(std::uint32_t, warps, kSortWarps);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::uint32_t sum = scan_warp<reduction::Sum>(own);
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  std::uint32_t before = sum - own;
  for (int w = 0; w < warp; ++w) before += warps[w];
  return before;
}

/// One block moves a tile. Warp w has the entries from w * 32 * kSortItems on; lanes of equal digit count the lanes
/// before.
template <class Source>
__global__ void radix_scatter(Source from, BufferedEntries<typename Source::Key> to, RadixPass p) {
  using Key = typename Source::Key;
  LEVIN_SHARED(std::uint32_t, counts, kSortWarps, kDigits);  // per warp, then the position of its next entry
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.x) / p.tiles;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) % p.tiles;
  const std::int64_t first = tile * kSortTile + warp * 32 * kSortItems;
  for (int w = 0; w < kSortWarps; ++w) counts[w][thread] = 0;
  __syncthreads();
  Key keys[kSortItems];
  std::uint32_t ranks[kSortItems];
  LEVIN_PRAGMA_UNROLL
  for (int k = 0; k < kSortItems; ++k) {
    const std::int64_t i = first + k * 32 + lane;
    keys[k] = i < p.n ? from.key(line, i) : Key{0};
    const int digit = i < p.n ? p.digit(keys[k]) : kDigits;
    const unsigned same = __match_any_sync(0xffffffffu, digit), below = same & ((1u << lane) - 1u);
    ranks[k] = digit < kDigits ? counts[warp][digit] + static_cast<std::uint32_t>(__popc(below)) : 0u;
    __syncwarp();
    if (digit < kDigits && below == 0) counts[warp][digit] += static_cast<std::uint32_t>(__popc(same));
    __syncwarp();
  }
  std::uint32_t next = sum_before(p.totals[line * kDigits + thread]);  // its barrier ends the counting
  next += p.counts[(line * kDigits + thread) * p.tiles + tile];
  for (int w = 0; w < kSortWarps; ++w) {
    const std::uint32_t count = counts[w][thread];
    counts[w][thread] = next;
    next += count;
  }
  __syncthreads();
  LEVIN_PRAGMA_UNROLL
  for (int k = 0; k < kSortItems; ++k) {
    const std::int64_t i = first + k * 32 + lane;
    if (i >= p.n) continue;
    const std::int64_t at = line * p.n + counts[warp][p.digit(keys[k])] + ranks[k];
    to.keys[at] = keys[k];
    to.places[at] = from.place(line, i);
  }
}

/// Writes the first k of each sorted line to the outputs.
template <class T>
__global__ void sort_gather(SortLines<T> s, const std::uint32_t* places) {
  for (std::int64_t i = global_thread(); i < s.lines * s.k; i += grid_threads()) {
    const std::int64_t line = i / s.k, rank = i % s.k;
    s.store(line, rank, static_cast<std::int64_t>(places[line * s.n + rank]));
  }
}

}  // namespace levin::kernels::cuda
