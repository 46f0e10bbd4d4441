// Copies with conversion: whole blocks, transposed tiles, and rows for everything else.

#include "elementwise/rows.h"

#include <levin/core/parallel.h>
#include <levin/kernels/copy.h>

#include <algorithm>
#include <cstring>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kTile = 16;         // a cache line of floats
constexpr int64_t kBand = 64;         // columns of a task

/// Sizes and strides (in elements) of a copy without conversion, unit axes removed and even neighbours merged.
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

/// out[c * os + r] = in[r * is + c] for r < rows, c < columns: a line is read and written whole, however far apart the
/// lines lie.
template <class T>
void transpose_tile(T* out, int64_t os, const T* in, int64_t is, int64_t rows, int64_t columns) {
  T tile[kTile][kTile];
  if (rows == kTile && columns == kTile) {
    for (int64_t r = 0; r < kTile; ++r) std::memcpy(tile[r], in + r * is, sizeof tile[r]);
    for (int64_t c = 0; c < kTile; ++c) {
      T line[kTile];
      for (int64_t r = 0; r < kTile; ++r) line[r] = tile[r][c];
      std::memcpy(out + c * os, line, sizeof line);
    }
    return;
  }
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) out[c * os + r] = in[r * is + c];
}

/// The axes `row` (unit in out) and `column` (unit in x) as tiles, all others as a loop over planes.
template <class T>
void transposed(const Walk& w, int row, int column, T* out, const T* in) {
  const int64_t rows = w.sizes[row], columns = w.sizes[column];
  const int64_t bands = (columns - 1) / kBand + 1, stripes = (rows - 1) / kBand + 1;
  int64_t planes = 1;
  for (int d = 0; d < w.dims; ++d)
    if (d != row && d != column) planes *= w.sizes[d];
  parallel_for(0, planes * bands * stripes, std::max<int64_t>(1, kGrain / (kBand * kBand)), [&](int64_t b, int64_t e) {
    for (int64_t task = b; task < e; ++task) {
      int64_t plane = task / (bands * stripes);
      const int64_t c0 = task / stripes % bands * kBand, r0 = task % stripes * kBand;
      T* to = out;
      const T* from = in;
      for (int d = w.dims - 1; d >= 0; --d) {
        if (d == row || d == column) continue;
        to += plane % w.sizes[d] * w.out[d];
        from += plane % w.sizes[d] * w.in[d];
        plane /= w.sizes[d];
      }
      const int64_t c1 = std::min(c0 + kBand, columns), r1 = std::min(r0 + kBand, rows);
      for (int64_t r = r0; r < r1; r += kTile)
        for (int64_t c = c0; c < c1; c += kTile)
          transpose_tile(to + c * w.out[column] + r, w.out[column], from + r * w.in[row] + c, w.in[row],
                         std::min(kTile, r1 - r), std::min(kTile, c1 - c));
    }
  });
}

/// Copies when one axis is unit in out and another one in x; false when the geometry is different.
template <class T>
bool try_transposed(const Walk& w, void* out, const void* in) {
  int row = -1, column = -1;
  for (int d = 0; d < w.dims; ++d) {
    if (w.out[d] == 1) row = d;
    if (w.in[d] == 1) column = d;
  }
  if (row < 0 || column < 0 || row == column || w.sizes[row] < 4 || w.sizes[column] < 4) return false;
  transposed(w, row, column, static_cast<T*>(out), static_cast<const T*>(in));
  return true;
}

bool try_transposed(const Walk& w, const CopyArgs& a) {
  switch (size_of(a.out.dtype)) {
    case 1: return try_transposed<std::uint8_t>(w, a.out.pointer, a.x.pointer);
    case 2: return try_transposed<std::uint16_t>(w, a.out.pointer, a.x.pointer);
    case 4: return try_transposed<std::uint32_t>(w, a.out.pointer, a.x.pointer);
    default: return try_transposed<std::uint64_t>(w, a.out.pointer, a.x.pointer);
  }
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
    if (try_transposed(make_walk(a), a)) return;
  }
  // Rows of the target's type: where types differ the driver's own conversion does the work.
  run_rows(a.out, a.out.dtype, {{&a.x, a.out.dtype}}, copy_row_for(a.out.dtype));
}

}  // namespace cpu

constinit Kernel<void(const CopyArgs&, Stream&)> copy{"copy", cpu::copy};

}  // namespace levin::kernels
