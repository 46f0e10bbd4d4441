// Whole slices along an axis: cat, index_select and its transpose, index_add.

#include "index.h"
#include "kernels/src/table.h"

#include "kernels/cpu/scratch.h"

#include <levin/core/parallel.h>
#include <levin/kernels/indexing.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace levin::kernels {

namespace cpu {

namespace {

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Every part is a slab of `outer` rows; a task copies a range of one part's bytes.
void cat(const CatArgs& a, Stream&) {
  constexpr int64_t task_bytes = 1 << 17;
  int64_t outer = 1, inner = size_of(a.out.dtype);
  for (int d = 0; d < a.axis; ++d) outer *= a.out.sizes[d];
  for (int d = a.axis + 1; d < a.out.dim(); ++d) inner *= a.out.sizes[d];
  const int64_t out_row = a.out.sizes[a.axis] * inner;
  std::byte* out = static_cast<std::byte*>(a.out.pointer);
  for (const TensorView& part : a.parts) {
    const std::byte* x = static_cast<const std::byte*>(part.pointer);
    const int64_t row = part.sizes[a.axis] * inner;
    if (row > 0 && outer == 1) {
      parallel_for(0, row, task_bytes, [&](int64_t b, int64_t e) { copy_bytes(out + b, x + b, e - b); });
    } else if (row > 0) {
      parallel_for(0, outer, std::max<int64_t>(1, task_bytes / row), [&](int64_t b, int64_t e) {
        for (int64_t o = b; o < e; ++o) copy_bytes(out + o * out_row, x + o * row, row);
      });
    }
    out += row;
  }
}

/// Throws for the first index that is out of range.
void check_index(const TensorView& index, int64_t size, const char* op) {
  const int64_t* values = static_cast<const int64_t*>(index.pointer);
  std::uint64_t outside = 0;  // the highest bit, if a value was; a loop without branches
  const auto last = static_cast<std::uint64_t>(size) - 1;
  for (int64_t i = 0, n = index.numel(); i < n; ++i) {
    const auto value = static_cast<std::uint64_t>(values[i]);
    outside |= value | (last - value);
  }
  if (static_cast<int64_t>(outside) >= 0) return;
  for (int64_t i = 0; i < index.numel(); ++i)
    if (!is_index(values[i], size)) index_out_of_range(op, values[i], index.sizes, i, size);
}

template <class T>
void select_elements(const IndexSelectArgs& a) {
  const int64_t k = a.index.numel();
  const int64_t* index = static_cast<const int64_t*>(a.index.pointer);
  T* out = static_cast<T*>(a.out.pointer);
  const T* x = static_cast<const T*>(a.x.pointer);
  parallel_for(0, a.outer * k, kIndexGrain, [&](int64_t b, int64_t e) {
    int64_t o = b / k, i = b % k;
    for (int64_t at = b; at < e; ++at) {
      out[at] = x[o * a.n + index[i]];
      if (++i == k) i = 0, ++o;
    }
  });
}

void index_select(const IndexSelectArgs& a, Stream&) {
  check_index(a.index, a.n, a.op);
  const int64_t k = a.index.numel();
  if (a.outer * k * a.inner == 0) return;
  if (a.inner == 1) return dispatch_size(a.out.dtype, [&]<class T>() { select_elements<T>(a); });
  const int64_t* index = static_cast<const int64_t*>(a.index.pointer);
  const int64_t bytes = a.inner * size_of(a.out.dtype);
  std::byte* out = static_cast<std::byte*>(a.out.pointer);
  const std::byte* x = static_cast<const std::byte*>(a.x.pointer);
  parallel_for(0, a.outer * k, index_grain(a.inner), [&](int64_t b, int64_t e) {
    for (int64_t at = b; at < e; ++at) copy_bytes(out + at * bytes, x + (at / k * a.n + index[at % k]) * bytes, bytes);
  });
}

/// The positions of each row among k indices, in their order (counting sort).
struct Buckets {
  const int64_t* start;  ///< (n + 1)
  const int64_t* order;  ///< (k)
};

Buckets make_buckets(const IndexAddArgs& a) {
  const int64_t k = a.index.numel();
  const int64_t* index = static_cast<const int64_t*>(a.index.pointer);
  int64_t* start = scratch<int64_t>(Slot::index, a.n + 2 + k);
  int64_t* order = start + a.n + 2;
  std::fill_n(start, a.n + 2, 0);
  for (int64_t i = 0; i < k; ++i)
    if (index[i] != a.skip) ++start[index[i] + 2];
  for (int64_t r = 2; r < a.n + 2; ++r) start[r] += start[r - 1];
  for (int64_t i = 0; i < k; ++i)
    if (index[i] != a.skip) order[start[index[i] + 1]++] = i;
  return {start, order};
}

/// Adds single elements in their order: lists of each place's sources would cost more than the sums.
template <class T>
void add_elements(const IndexAddArgs& a) {
  const int64_t k = a.index.numel();
  const int64_t* index = static_cast<const int64_t*>(a.index.pointer);
  parallel_for(0, a.outer, index_grain(k), [&](int64_t b, int64_t e) {
    for (int64_t o = b; o < e; ++o) {
      T* to = static_cast<T*>(a.out.pointer) + o * a.n;
      const T* from = static_cast<const T*>(a.source.pointer) + o * k;
      for (int64_t i = 0; i < k; ++i)
        if (index[i] != a.skip) to[index[i]] = static_cast<T>(to[index[i]] + from[i]);
    }
  });
}

/// One task sums all sources of some rows, so a row is processed by one thread and stays in its cache.
template <class T>
void add_slices(const IndexAddArgs& a) {
  const int64_t k = a.index.numel();
  if (a.outer * k * a.inner == 0) return;
  if (a.inner == 1) return add_elements<T>(a);
  const Buckets buckets = make_buckets(a);
  T* out = static_cast<T*>(a.out.pointer);
  const T* source = static_cast<const T*>(a.source.pointer);
  const int64_t per_row = std::max<int64_t>(1, k * a.inner / a.n);
  parallel_for(0, a.outer * a.n, index_grain(per_row), [&](int64_t b, int64_t e) {
    for (int64_t row = b; row < e; ++row) {
      const int64_t o = row / a.n, r = row % a.n;
      T* to = out + row * a.inner;
      for (int64_t s = buckets.start[r]; s < buckets.start[r + 1]; ++s) {
        const T* from = source + (o * k + buckets.order[s]) * a.inner;
        for (int64_t j = 0; j < a.inner; ++j) to[j] = static_cast<T>(to[j] + from[j]);
      }
    }
  });
}

void index_add(const IndexAddArgs& a, Stream&) {
  check_index(a.index, a.n, a.op);
  dispatch_numeric(a.out.dtype, "index_add", [&]<class T>() { add_slices<T>(a); });
}

void index_positions(const IndexPositionsArgs& a, Stream&) {
  std::atomic<bool> inside = true;
  parallel_for(0, a.out.numel(), kIndexGrain, [&](int64_t b, int64_t e) {
    std::uint64_t* const out = a.out.data<std::uint64_t>();
    std::uint64_t outside = 0;  // the highest bit, if an index was
    for (std::size_t k = 0; k < a.parts.size(); ++k) {
      const int64_t* const index = a.parts[k].index.data<int64_t>();
      const auto size = static_cast<std::uint64_t>(a.parts[k].size), step = static_cast<std::uint64_t>(a.parts[k].step);
      for (int64_t i = b; i < e; ++i) {
        const std::uint64_t place = static_cast<std::uint64_t>(index[i]) + (index[i] < 0 ? size : 0);
        outside |= place | (size - 1 - place);
        out[i] = (k == 0 ? 0 : out[i]) + place * step;
      }
    }
    if (static_cast<int64_t>(outside) < 0) inside.store(false, std::memory_order_relaxed);
  });
  *a.inside = inside.load(std::memory_order_relaxed);
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(CatArgs, cat, cpu::cat);
LEVIN_KERNEL(IndexSelectArgs, index_select, cpu::index_select);
LEVIN_KERNEL(IndexAddArgs, index_add, cpu::index_add);
LEVIN_HOST_ONLY(IndexPositionsArgs, index_positions, cpu::index_positions,
                "on CUDA positions are composed, because the host would have to wait for the check");

}  // namespace levin::kernels
