#pragma once
// Sorting in shared memory: bitonic sort of a short line, or of the first few elements of a long one, which a radix
// selection finds.

#include "kernels/cuda/sort/keys.cuh"

namespace levin::kernels::cuda {

inline constexpr int kShortSort = 1024;  ///< maximum number of entries
inline constexpr int kSelectThreads = 256;

/// Sorts entries[0, size) by the whole block, where size is a power of two. Begins and ends with a barrier.
template <class Entry>
__device__ void bitonic_sort(Entry* entries, int size) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int pair = thread; pair < size / 2; pair += threads) {
        const int i = pair / step * 2 * step + pair % step;
        const bool ascending = (i & run) == 0;
        const Entry a = entries[i], b = entries[i + step];
        if (b.before(a) == ascending) entries[i] = b, entries[i + step] = a;
      }
      __syncthreads();
    }
  }
}

/// One block sorts a line; `size` is n rounded up to a power of two.
template <class T>
__global__ void sort_short(SortLines<T> s, int size) {
  using Key = SortKey<T>;
  using Entry = SortEntry<Key>;
  LEVIN_SHARED(Entry, entries, kShortSort);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.x);
  for (int i = thread; i < size; i += threads) {
    entries[i] = Entry::make(i < s.n ? s.key(line, i) : static_cast<Key>(~Key{0}),
                             i < s.n ? static_cast<std::uint32_t>(i) : ~std::uint32_t{0});
  }
  bitonic_sort(&entries[0], size);
  for (int i = thread; i < s.k; i += threads) s.store(line, i, static_cast<std::int64_t>(entries[i].place()));
}

/// The state of a block's search for the k-th key of its line, digit by digit from the top.
template <class Key>
struct Selection {
  Key prefix, mask;      ///< the known digits
  std::uint32_t wanted;  ///< rank of the key among those with this prefix
};

/// Narrows the selection by the 8-bit digit at `shift`. Ends with a barrier.
template <class T>
__device__ void select_digit(const SortLines<T>& s, std::int64_t line, int shift, std::uint32_t* histogram,
                             Selection<SortKey<T>>& selection) {
  using Key = SortKey<T>;
  const int thread = static_cast<int>(threadIdx.x);
  histogram[thread] = 0;
  __syncthreads();
  const Selection<Key> known = selection;
  for (std::int64_t i = thread; i < s.n; i += kSelectThreads) {
    const Key key = s.key(line, i);
    if ((key & known.mask) == known.prefix) atomicAdd(&histogram[key >> shift & 255u], 1u);
  }
  __syncthreads();
  if (thread == 0) {
    std::uint32_t wanted = known.wanted, digit = 0;
    while (histogram[digit] < wanted) wanted -= histogram[digit++];
    selection = {static_cast<Key>(known.prefix | static_cast<Key>(digit) << shift),
                 static_cast<Key>(known.mask | Key{255} << shift), wanted};
  }
  __syncthreads();
}

/// Returns the number of threads of lower index in the block with `flag` set; the total goes to `all`. Ends with a
/// barrier.
__device__ inline std::uint32_t count_before(bool flag, std::uint32_t* warps, std::uint32_t& all) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned lanes = __ballot_sync(0xffffffffu, flag);
  if (lane == 0) warps[warp] = static_cast<std::uint32_t>(__popc(lanes));
  __syncthreads();
  std::uint32_t before = static_cast<std::uint32_t>(__popc(lanes & ((1u << lane) - 1u)));
  all = 0;
  for (int w = 0; w < kSelectThreads / 32; ++w) {
    if (w < warp) before += warps[w];
    all += warps[w];
  }
  __syncthreads();
  return before;
}

/// One block finds the first k of a long line, k at most kShortSort, and sorts them; `size` is k rounded up to a power
/// of two. Keys before the k-th are taken in any order, ties with it in the order of the line.
template <class T>
__global__ void select_first(SortLines<T> s, int size) {
  using Key = SortKey<T>;
  using Entry = SortEntry<Key>;
  LEVIN_SHARED(Entry, entries, kShortSort);
  LEVIN_SHARED(std::uint32_t, histogram, 256);
  LEVIN_SHARED(std::uint32_t, warps, kSelectThreads / 32);
  LEVIN_SHARED(Selection<Key>, selection, 1);
  LEVIN_SHARED(std::uint32_t, taken, 1);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.x);
  if (thread == 0) selection[0] = {Key{0}, Key{0}, static_cast<std::uint32_t>(s.k)}, taken[0] = 0;
  for (int i = thread; i < size; i += kSelectThreads) {
    entries[i] = Entry::make(static_cast<Key>(~Key{0}), ~std::uint32_t{0});
  }
  __syncthreads();
  for (int shift = kKeyBits<T> - 8; shift >= 0; shift -= 8) {
    select_digit(s, line, shift, &histogram[0], selection[0]);
  }
  const Key last = selection[0].prefix;
  const std::uint32_t most_ties = selection[0].wanted, first_tie = static_cast<std::uint32_t>(s.k) - most_ties;
  std::uint32_t ties = 0;
  for (std::int64_t first = 0; first < s.n; first += kSelectThreads) {
    const std::int64_t i = first + thread;
    const Key key = i < s.n ? s.key(line, i) : static_cast<Key>(~Key{0});
    const Entry entry = Entry::make(key, static_cast<std::uint32_t>(i));
    if (i < s.n && key < last) entries[atomicAdd(&taken[0], 1u)] = entry;
    std::uint32_t all = 0;
    const bool tie = i < s.n && key == last;
    const std::uint32_t place = ties + count_before(tie, &warps[0], all);
    if (tie && place < most_ties) entries[first_tie + place] = entry;
    ties += all;
  }
  bitonic_sort(&entries[0], size);
  for (int i = thread; i < s.k; i += kSelectThreads) {
    s.store(line, i, static_cast<std::int64_t>(entries[i].place()));
  }
}

}  // namespace levin::kernels::cuda
