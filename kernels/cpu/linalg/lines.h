#pragma once
// Steps of factorizations on contiguous lines of float or double, compiled for each instruction set.

#include "kernels/cpu/transpose.h"

#include <algorithm>
#include <cstdint>

namespace levin::kernels::cpu::linalg {

using std::int64_t;

/// A plane rotation: (x, y) becomes (c x + s y, c y - s x).
template <class T>
struct Rotation {
  T c, s;
};

/// Rotations of neighbouring lines: number i rotates lines first + i * step and first + (i + 1) * step, with step 1 or
/// -1, so that each line but the first and last takes part in two.
struct Chain {
  int64_t first, step;
  int64_t begin, count;  ///< its rotations in a list
};

/// y[i] = the product of row i of a (rows, n) and x (n).
void products(const float* a, int64_t stride, int64_t rows, int64_t n, const float* x, float* y);
void products(const double* a, int64_t stride, int64_t rows, int64_t n, const double* x, double* y);

/// y (n) += scale * x (n).
void add_scaled(int64_t n, float scale, const float* x, float* y);
void add_scaled(int64_t n, double scale, const double* x, double* y);

/// y (n) -= the sum of factors[k * step] * line_k (n) over `count` lines, which are `stride` elements apart.
void subtract_lines(int64_t count, int64_t n, const float* factors, int64_t step, const float* lines, int64_t stride,
                    float* y);
void subtract_lines(int64_t count, int64_t n, const double* factors, int64_t step, const double* lines, int64_t stride,
                    double* y);

/// Replace the columns of a block, stored as lines (width, height) of which each needs kLineSlack elements behind it,
/// by those of its factors. Cholesky's factor L is undefined above the diagonal; the result is false if a pivot is not
/// positive. LU leaves U down to the diagonal and L below it, exchanges row j of the block with row pivots[j], and
/// returns whether no pivot is 0.
bool cholesky_of_columns(int64_t height, int64_t width, float* lines, int64_t stride);
bool cholesky_of_columns(int64_t height, int64_t width, double* lines, int64_t stride);
bool lu_of_columns(int64_t height, int64_t width, float* lines, int64_t stride, int64_t* pivots);
bool lu_of_columns(int64_t height, int64_t width, double* lines, int64_t stride, int64_t* pivots);
inline constexpr int64_t kLineSlack = 16;  ///< elements of the longest vector, since whole vectors are read and written

/// Applies the chains, one after the other, to the lines a (lines, columns).
void rotate(float* a, int64_t stride, int64_t columns, const Chain* chains, int64_t count, const Rotation<float>* list);
void rotate(double* a, int64_t stride, int64_t columns, const Chain* chains, int64_t count,
            const Rotation<double>* list);

struct PoleSum {
  double value, slope;
};

/// The sum of weights[j] / (gaps[j] - x) over j < n, and its derivative by x.
PoleSum sum_of_poles(int64_t n, const double* weights, const double* gaps, double x);

/// y[j] *= x[j] / (poles[j] - pole) for j < n.
void multiply_by_ratios(int64_t n, const double* x, const double* poles, double pole, double* y);

/// out (n, m) = the transposed a (m, n), whose rows are so many elements apart.
template <class T>
void transpose_into(T* out, int64_t out_stride, const T* a, int64_t stride, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; i += kTile)
    for (int64_t j = 0; j < n; j += kTile)
      transpose_tile(sizeof(T), out + j * out_stride + i, out_stride, a + i * stride + j, stride,
                     std::min(kTile, m - i), std::min(kTile, n - j));
}

template <class T>
T product(int64_t n, const T* x, const T* y) {
  T sum;
  products(x, 0, 1, n, y, &sum);
  return sum;
}

}  // namespace levin::kernels::cpu::linalg
