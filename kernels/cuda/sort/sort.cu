// sort and topk: bitonic sort of short lines, radix selection of few elements, radix sort otherwise.
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/sort/radix.cuh"
#include "kernels/cuda/sort/short.cuh"

#include <levin/kernels/scan.h>

#include <string>
#include <utility>

namespace levin::kernels::cuda {

namespace {

template <class T>
void radix_sort(const SortLines<T>& s, Stream& stream) {
  using Key = SortKey<T>;
  RadixPass pass{s.n, ceil_div(s.n, kSortTile), 0, nullptr, nullptr};
  Scratch<Key> keys(stream, 2 * s.lines * s.n);
  Scratch<std::uint32_t> places(stream, 2 * s.lines * s.n), counts(stream, s.lines * kDigits * pass.tiles),
      totals(stream, s.lines * kDigits);
  pass.counts = counts.get();
  pass.totals = totals.get();
  BufferedEntries<Key> from{keys.get(), places.get(), s.n};
  BufferedEntries<Key> to{keys.get() + s.lines * s.n, places.get() + s.lines * s.n, s.n};
  const LaunchConfig tiles{
      .grid = static_cast<unsigned>(s.lines * pass.tiles), .block = kSortThreads, .stream = stream};
  const std::int64_t digits = s.lines * kDigits;
  const LaunchConfig warps{
      .grid = static_cast<unsigned>(digits * 32 / kSortThreads), .block = kSortThreads, .stream = stream};
  for (; pass.shift < kKeyBits<T>; pass.shift += 8) {
    if (pass.shift == 0) {
      const TensorEntries<T> tensor{s};
      launch(radix_count<TensorEntries<T>>, tiles, tensor, pass);
      launch(radix_offsets, warps, pass, digits);
      launch(radix_scatter<TensorEntries<T>>, tiles, tensor, to, pass);
    } else {
      launch(radix_count<BufferedEntries<Key>>, tiles, from, pass);
      launch(radix_offsets, warps, pass, digits);
      launch(radix_scatter<BufferedEntries<Key>>, tiles, from, to, pass);
    }
    std::swap(from, to);
  }
  launch(sort_gather<T>, {.grid = blocks_for(s.lines * s.k), .block = 256, .stream = stream}, s, from.places);
}

int power_of_two_above(std::int64_t n) {
  int size = 2;
  while (size < n) size *= 2;
  return size;
}

template <class T>
void sort_lines(const SortArgs& a, Stream& stream) {
  using D = DeviceType<T>;
  constexpr auto all = static_cast<SortKey<D>>(~std::uint64_t{0} >> (64 - kKeyBits<D>));
  const SortLines<D> s{reinterpret_cast<const D*>(a.x.data<T>()),
                       reinterpret_cast<D*>(a.values.data<T>()),
                       a.indices.data<std::int64_t>(),
                       a.outer * a.inner,
                       a.n,
                       a.inner,
                       a.k,
                       a.descending ? all : SortKey<D>{0},
                       a.from};
  const auto lines = static_cast<unsigned>(s.lines);
  if (s.n <= kShortSort) {
    const int size = power_of_two_above(s.n);
    const unsigned threads = size <= 64 ? 32 : size <= 256 ? 128 : 256;
    return launch(sort_short<D>, {.grid = lines, .block = threads, .stream = stream}, s, size);
  }
  if (s.k <= kShortSort) {
    return launch(select_first<D>, {.grid = lines, .block = kSelectThreads, .stream = stream}, s,
                  power_of_two_above(s.k));
  }
  radix_sort(s, stream);
}

}  // namespace

void sort(const SortArgs& a, Stream& stream) {
  if (a.outer * a.n * a.inner * a.k == 0) return;
  if (a.n > std::int64_t{0xffffffff}) {
    throw ShapeError("[sort] lines of " + std::to_string(a.n) +
                     " elements are too long: on CUDA the limit is 2^32 - 1. Sort them on the CPU.");
  }
  dispatch_all(a.x.dtype, "sort", [&]<class T>() { sort_lines<T>(a, stream); });
}

void topk(const SortArgs& a, Stream& stream) { sort(a, stream); }

}  // namespace levin::kernels::cuda
