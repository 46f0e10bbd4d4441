// Elements selected by a condition: nonzero, triangles, one-hot rows.

#include "index.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/indexing.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace levin::kernels {

namespace cpu {

namespace {

void count_nonzero(const CountNonzeroArgs& a, Stream&) {
  int64_t* counts = static_cast<int64_t*>(a.counts.pointer);
  dispatch_all(a.x.dtype, "nonzero", [&]<class T>() {
    const T* x = static_cast<const T*>(a.x.pointer);
    parallel_for(0, a.x.numel(), kNonzeroChunk, [&](int64_t b, int64_t e) {
      counts[b / kNonzeroChunk] = e - b - std::count_if(x + b, x + e, [](T v) { return v == T(0); });
    });
  });
}

void nonzero(const NonzeroArgs& a, Stream&) {
  const int64_t* counts = static_cast<const int64_t*>(a.counts.pointer);
  std::vector<int64_t> first(static_cast<std::size_t>(a.counts.numel()) + 1, 0);
  for (std::size_t i = 0; i + 1 < first.size(); ++i) first[i + 1] = first[i] + counts[i];
  const int dims = a.x.dim();
  dispatch_all(a.x.dtype, "nonzero", [&]<class T>() {
    const T* x = static_cast<const T*>(a.x.pointer);
    parallel_for(0, a.x.numel(), kNonzeroChunk, [&](int64_t b, int64_t e) {
      int64_t* out = static_cast<int64_t*>(a.out.pointer) + first[static_cast<std::size_t>(b / kNonzeroChunk)] * dims;
      for (int64_t i = b; i < e; ++i) {
        if (x[i] == T(0)) continue;
        int64_t rest = i;
        for (int d = dims - 1; d >= 0; --d) {
          out[d] = rest % a.x.sizes[d];
          rest /= a.x.sizes[d];
        }
        out += dims;
      }
    });
  });
}

void triangle(const TriangleArgs& a, Stream&) {
  const int64_t item = size_of(a.out.dtype), bytes = a.columns * item;
  std::byte* out = static_cast<std::byte*>(a.out.pointer);
  const std::byte* x = static_cast<const std::byte*>(a.x.pointer);
  parallel_for(0, a.batch * a.rows, index_grain(a.columns), [&](int64_t b, int64_t e) {
    for (int64_t row = b; row < e; ++row) {
      const int64_t r = row % a.rows;
      // Columns [begin, end) are kept.
      const int64_t begin = a.upper ? std::clamp<int64_t>(r + a.diagonal, 0, a.columns) * item : 0;
      const int64_t end = a.upper ? bytes : std::clamp<int64_t>(r + a.diagonal + 1, 0, a.columns) * item;
      std::byte* to = out + row * bytes;
      if (out != x) std::memcpy(to + begin, x + row * bytes + begin, static_cast<std::size_t>(end - begin));
      std::memset(to, 0, static_cast<std::size_t>(begin));
      std::memset(to + end, 0, static_cast<std::size_t>(bytes - end));
    }
  });
}

void one_hot(const OneHotArgs& a, Stream&) {
  const int64_t* index = static_cast<const int64_t*>(a.index.pointer);
  int64_t* out = static_cast<int64_t*>(a.out.pointer);
  parallel_for(0, a.index.numel(), index_grain(a.classes), [&](int64_t b, int64_t e) {
    std::fill_n(out + b * a.classes, (e - b) * a.classes, 0);
    for (int64_t i = b; i < e; ++i) {
      if (!is_index(index[i], a.classes)) index_out_of_range("one_hot", index[i], a.index.sizes, i, a.classes);
      out[i * a.classes + index[i]] = 1;
    }
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(CountNonzeroArgs, count_nonzero, cpu::count_nonzero);
LEVIN_KERNEL(NonzeroArgs, nonzero, cpu::nonzero);
LEVIN_KERNEL(TriangleArgs, triangle, cpu::triangle);
LEVIN_KERNEL(OneHotArgs, one_hot, cpu::one_hot);

}  // namespace levin::kernels
