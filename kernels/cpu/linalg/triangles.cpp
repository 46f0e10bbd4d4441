// Cholesky and LU factorizations and triangular systems, in blocks of rows: inside a block line by line, the rest by
// matrix products (Golub and Van Loan, Matrix Computations, chapters 3 and 4).

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/linalg/buffer.h"
#include "kernels/cpu/linalg/lines.h"

#include <levin/kernels/linalg/factorizations.h>

#include <algorithm>

namespace levin::kernels::linalg {

using namespace cpu::linalg;

namespace {

constexpr int64_t kTriangleBlock = 16;

/// C (m, n) -= A (m, k) B (k, n), rows `stride` apart in all of them; B is (n, k) and read transposed if `transposed`.
template <class T>
void subtract_product(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c, int64_t a_stride, int64_t b_stride,
                      int64_t c_stride, bool transposed = false) {
  if (m == 0 || n == 0 || k == 0) return;
  cpu::gemm({.m = m,
             .n = n,
             .k = k,
             .a = a,
             .a_rs = a_stride,
             .a_cs = 1,
             .b = b,
             .b_rs = transposed ? 1 : b_stride,
             .b_cs = transposed ? b_stride : 1,
             .c = c,
             .c_rs = c_stride,
             .alpha = T(-1),
             .beta = T(1)});
}

/// The columns of a block as lines of a buffer.
template <class T>
struct Columns {
  T* lines;
  int64_t height, width, stride;
};

/// Calls f(columns) with columns [begin, begin + width) of a (n, n) from row `begin` on, and copies them back; returns
/// f's result.
template <class T, class F>
bool with_columns(T* a, int64_t n, int64_t begin, int64_t width, Buffer<T>& buffer, F f) {
  const Columns<T> columns{buffer.data(), n - begin, width, n - begin + kLineSlack};
  T* block = a + begin * n + begin;
  transpose_into(columns.lines, columns.stride, block, n, columns.height, width);
  const bool result = f(columns);
  transpose_into(block, n, columns.lines, columns.stride, width, columns.height);
  return result;
}
template <class T>
Buffer<T> columns_buffer(int64_t n) {
  return Buffer<T>(static_cast<std::size_t>((n + kLineSlack) * std::min(kTriangleBlock, n)));
}

}  // namespace

template <class T>
bool cholesky(T* a, int64_t n) {
  Buffer<T> buffer = columns_buffer<T>(n);
  for (int64_t begin = 0; begin < n; begin += kTriangleBlock) {
    const int64_t width = std::min(kTriangleBlock, n - begin);
    subtract_product(n - begin, width, begin, a + begin * n, a + begin * n, a + begin * n + begin, n, n, n, true);
    const bool positive = with_columns(a, n, begin, width, buffer, [](const Columns<T>& c) {
      return cholesky_of_columns(c.height, c.width, c.lines, c.stride);
    });
    if (!positive) return false;
  }
  for (int64_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  return true;
}

template <class T>
bool lu(T* a, int64_t n, int64_t* pivots) {
  bool regular = true;
  Buffer<T> buffer = columns_buffer<T>(n);
  for (int64_t begin = 0; begin < n; begin += kTriangleBlock) {
    const int64_t width = std::min(kTriangleBlock, n - begin), end = begin + width;
    regular &= with_columns(a, n, begin, width, buffer, [&](const Columns<T>& c) {
      return lu_of_columns(c.height, c.width, c.lines, c.stride, pivots + begin);
    });
    for (int64_t i = begin; i < end; ++i) pivots[i] += begin;
    // The columns of the block have exchanged their rows already.
    for (int64_t i = begin; i < end; ++i) {
      T *row = a + i * n, *other = a + pivots[i] * n;
      if (row == other) continue;
      std::swap_ranges(row, row + begin, other);
      std::swap_ranges(row + end, row + n, other + end);
    }
    for (int64_t i = begin + 1; i < end && end < n; ++i)
      subtract_lines(i - begin, n - end, a + i * n + begin, 1, a + begin * n + end, n, a + i * n + end);
    subtract_product(n - end, n - end, width, a + end * n + begin, a + begin * n + end, a + end * n + end, n, n, n);
  }
  return regular;
}

template <class T>
void solve_triangular(const T* a, int64_t n, T* b, int64_t columns, bool upper, bool unit) {
  const int64_t blocks = (n + kTriangleBlock - 1) / kTriangleBlock;
  for (int64_t k = 0; k < blocks; ++k) {
    const int64_t begin = (upper ? blocks - 1 - k : k) * kTriangleBlock, end = std::min(begin + kTriangleBlock, n);
    for (int64_t step = 0; step < end - begin; ++step) {
      const int64_t i = upper ? end - 1 - step : begin + step;
      T* row = b + i * columns;
      const int64_t first = upper ? i + 1 : begin, count = (upper ? end : i) - first;
      if (count > 0) subtract_lines(count, columns, a + i * n + first, 1, b + first * columns, columns, row);
      if (unit) continue;
      for (int64_t c = 0; c < columns; ++c) row[c] /= a[i * n + i];
    }
    const int64_t from = upper ? 0 : end, to = upper ? begin : n;
    subtract_product(to - from, columns, end - begin, a + from * n + begin, b + begin * columns, b + from * columns, n,
                     columns, columns);
  }
}

template bool cholesky(float*, int64_t);
template bool cholesky(double*, int64_t);
template bool lu(float*, int64_t, int64_t*);
template bool lu(double*, int64_t, int64_t*);
template void solve_triangular(const float*, int64_t, float*, int64_t, bool, bool);
template void solve_triangular(const double*, int64_t, double*, int64_t, bool, bool);

}  // namespace levin::kernels::linalg
