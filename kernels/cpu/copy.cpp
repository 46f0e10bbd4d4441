// Copies with conversion: whole blocks, transposed tiles, short rows, and the driver of rows for everything else.

#include "elementwise/rows.h"
#include "indexing/index.h"
#include "kernels/cpu/copy.h"
#include "transpose.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>

#include <algorithm>
#include <cstring>

namespace levin::kernels {

namespace cpu {

namespace {

/// Sizes and strides (in elements) of a copy without conversion; unit axes are removed and evenly spaced neighbours
/// merged.
struct Walk {
  int dims = 0;
  int64_t sizes[kMaxDims], out[kMaxDims], in[kMaxDims];
};

Walk make_walk(const CopyArgs& a) {
  const Shape in = broadcast_strides(a.x.sizes, a.x.strides, a.out.sizes, "copy");
  Walk w;
  for (int d = 0; d < a.out.dim(); ++d) {
    if (a.out.sizes[d] == 1) continue;
    const int last = w.dims - 1;
    if (w.dims > 0 && w.out[last] == a.out.strides[d] * a.out.sizes[d] && w.in[last] == in[d] * a.out.sizes[d]) {
      w.sizes[last] *= a.out.sizes[d];
      w.out[last] = a.out.strides[d];
      w.in[last] = in[d];
    } else {
      w.sizes[w.dims] = a.out.sizes[d];
      w.out[w.dims] = a.out.strides[d];
      w.in[w.dims++] = in[d];
    }
  }
  return w;
}

/// Copies the axes `row` (unit in out) and `column` (unit in x) as tiles, and loops over planes for all others.
void transposed(const Walk& w, int row, int column, const CopyArgs& a) {
  const int64_t size = size_of(a.out.dtype);
  const int64_t rows = w.sizes[row], columns = w.sizes[column];
  const int64_t across = (columns - 1) / kTile + 1, down = (rows - 1) / kTile + 1;
  int64_t planes = 1;
  for (int d = 0; d < w.dims; ++d)
    if (d != row && d != column) planes *= w.sizes[d];
  const int64_t grain = std::max<int64_t>(1, kGrain / (std::min(rows, kTile) * std::min(columns, kTile)));
  parallel_for(0, planes * across * down, grain, [&](int64_t b, int64_t e) {
    for (int64_t task = b; task < e; ++task) {
      int64_t plane = task / (across * down);
      const int64_t c = task / down % across * kTile, r = task % down * kTile;
      int64_t to = c * w.out[column] + r, from = r * w.in[row] + c;
      for (int d = w.dims - 1; d >= 0; --d) {
        if (d == row || d == column) continue;
        to += plane % w.sizes[d] * w.out[d];
        from += plane % w.sizes[d] * w.in[d];
        plane /= w.sizes[d];
      }
      transpose_tile(size, static_cast<std::byte*>(a.out.pointer) + to * size, w.out[column],
                     static_cast<const std::byte*>(a.x.pointer) + from * size, w.in[row], std::min(kTile, rows - r),
                     std::min(kTile, columns - c));
    }
  });
}

/// Copies if one axis is unit in out and another one in x; returns false if the geometry is different.
bool try_transposed(const Walk& w, const CopyArgs& a) {
  int row = -1, column = -1;
  for (int d = 0; d < w.dims; ++d) {
    if (w.out[d] == 1) row = d;
    if (w.in[d] == 1) column = d;
  }
  if (row < 0 || column < 0 || row == column || w.sizes[row] < 2 || w.sizes[column] < 2) return false;
  transposed(w, row, column, a);
  return true;
}

constexpr int64_t kShortRow = 4096, kCallBytes = 256;  // bytes; from kCallBytes on, memcpy is worth its call

/// Calls row(to, from) with the addresses of each row, where `to` has the type of an element.
template <class T, class F>
void for_short_rows(const Walk& w, const CopyArgs& a, F&& row) {
  const int last = w.dims - 1;
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= w.sizes[d];
  parallel_for(0, rows, std::max<int64_t>(1, kGrain / w.sizes[last]), [&](int64_t begin, int64_t end) {
    int64_t index[kMaxDims], to = 0, from = 0, rest = begin;
    for (int d = last - 1; d >= 0; --d) {
      index[d] = rest % w.sizes[d];
      rest /= w.sizes[d];
      to += index[d] * w.out[d];
      from += index[d] * w.in[d];
    }
    for (int64_t r = begin; r < end; ++r) {
      row(a.out.data<T>() + to, a.x.data<T>() + from);
      for (int d = last - 1; d >= 0; --d) {
        to += w.out[d];
        from += w.in[d];
        if (++index[d] < w.sizes[d]) break;
        to -= index[d] * w.out[d];
        from -= index[d] * w.in[d];
        index[d] = 0;
      }
    }
  });
}

/// Copies many short rows, which are in memory order in out; returns false if the geometry is different.
bool try_short_rows(const Walk& w, const CopyArgs& a) {
  const int last = w.dims - 1;
  if (w.dims < 2 || w.sizes[last] * size_of(a.out.dtype) > kShortRow) return false;
  for (int d = 0; d < last; ++d)
    if (w.out[d] < w.out[d + 1]) return false;
  dispatch_size(a.out.dtype, [&]<class T>() {
    const int64_t n = w.sizes[last], out = w.out[last], in = w.in[last];
    if (out == 1 && in == 1) {
      const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
      for_short_rows<T>(w, a, [bytes](T* to, const T* from) {
        if (bytes >= kCallBytes) {
          std::memcpy(to, from, static_cast<std::size_t>(bytes));
        } else {
          copy_short(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), bytes);
        }
      });
    } else {
      for_short_rows<T>(w, a, [=](T* to, const T* from) {
        for (int64_t i = 0; i < n; ++i) to[i * out] = from[i * in];
      });
    }
  });
  return true;
}

template <class T>
void copy_row(const Row& r) {
  T* out = static_cast<T*>(r.out);
  const T* in = static_cast<const T*>(r.in[0]);
  if (r.step[0] == 0) {
    std::fill_n(out, r.n, *in);
  } else {
    std::memcpy(out, in, static_cast<std::size_t>(r.n) * sizeof(T));
  }
}

RowFn copy_row_for(DType t) {
  switch (size_of(t)) {
    case 1: return copy_row<std::uint8_t>;
    case 2: return copy_row<std::uint16_t>;
    case 4: return copy_row<std::uint32_t>;
    default: return copy_row<std::uint64_t>;
  }
}

}  // namespace

void copy(const CopyArgs& a, Stream&) {
  if (a.out.dtype == a.x.dtype && !a.x.is_number() && a.out.dim() > 1 &&
      !(a.out.is_contiguous() && a.x.is_contiguous() && a.out.sizes == a.x.sizes)) {
    if (a.out.numel() == 0) return;
    const Walk walk = make_walk(a);
    if (try_transposed(walk, a) || try_short_rows(walk, a)) return;
  }
  // Copies rows of the target's type; if the types differ, the driver converts.
  run_rows(a.out, a.out.dtype, {{&a.x, a.out.dtype}}, copy_row_for(a.out.dtype));
}

}  // namespace cpu

LEVIN_KERNEL(CopyArgs, copy, cpu::copy);

}  // namespace levin::kernels
