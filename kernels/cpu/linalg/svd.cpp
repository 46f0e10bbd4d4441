// Singular values: reflections reduce the matrix to a bidiagonal one, which rotations make diagonal (Golub and Van
// Loan, Matrix Computations, chapter 8; the steps are those of LAPACK's bdsqr).

#include "kernels/cpu/linalg/reflectors.h"
#include "kernels/cpu/linalg/rotated_lines.h"

#include <levin/kernels/linalg/factorizations.h>

namespace levin::kernels {

namespace cpu::linalg {

namespace {

/// Reduces a (n, n) to Q B P^T with the upper bidiagonal B of diagonal d (n) and e (n - 1) above it.
template <class T>
void bidiagonalize(T* a, int64_t n, double* d, double* e, Reflectors<T>& q, Reflectors<T>& p) {
  Buffer<T> sums(static_cast<std::size_t>(4 * n));
  T *pair_left = sums.data(), *pair_right = pair_left + 2 * n;  // (n, 2) and (2, n), of the update of the rest
  for (int64_t j = 0; j < n; ++j) {
    const int64_t next = j + 1, rest = n - next;
    T *u = q.line(j), *v = p.line(j), &tau_u = q.tau[static_cast<std::size_t>(j)];
    for (int64_t i = j; i < n; ++i) u[i] = a[i * n + j];
    d[j] = static_cast<double>(reflect(u + j, n - j, tau_u));
    if (rest == 0) return;
    T &tau_v = p.tau[static_cast<std::size_t>(j)], *w = pair_right, *row = a + j * n;
    gemm({.m = 1,
          .n = rest,
          .k = n - j,
          .a = u + j,
          .a_rs = n,
          .a_cs = 1,
          .b = row + next,
          .b_rs = n,
          .b_cs = 1,
          .c = w,
          .c_rs = rest,
          .alpha = tau_u});
    for (int64_t i = 0; i < rest; ++i) v[next + i] = row[next + i] - w[i];
    e[j] = static_cast<double>(reflect(v + next, rest, tau_v));
    // The rest becomes A - u w^T - y v^T with y = tau (A v - u (w v)).
    const T by_w = product(rest, w, v + next);
    parallel_for(0, rest, std::max<int64_t>(16, 65536 / rest), [&](int64_t b, int64_t to) {
      products(a + (next + b) * n + next, n, to - b, rest, v + next, pair_left + b);
    });
    for (int64_t i = rest; i-- > 0;) {
      const T y = tau_v * (pair_left[i] - u[next + i] * by_w);
      pair_left[2 * i] = u[next + i];
      pair_left[2 * i + 1] = y;
    }
    std::copy(v + next, v + n, w + rest);
    gemm({.m = rest,
          .n = rest,
          .k = 2,
          .a = pair_left,
          .a_rs = 2,
          .a_cs = 1,
          .b = w,
          .b_rs = rest,
          .b_cs = 1,
          .c = a + next * n + next,
          .c_rs = n,
          .alpha = T(-1),
          .beta = T(1)});
  }
}

/// The smaller singular value of the upper triangular matrix (f g; 0 h).
double smaller_singular_value(double f, double g, double h) {
  const double a = std::abs(f), b = std::abs(g), c = std::abs(h), least = std::min(a, c), most = std::max(a, c);
  if (least == 0) return 0;
  const double plus = std::hypot(most + least, b), minus = std::hypot(most - least, b);
  return 2 * least * (most / (plus + minus));
}

/// One implicit step of QR on the block of d[0..m] and e[0..m-1]; `left` and `right` are those of this walk.
template <class T>
void qr_step(Walk d, Walk e, int64_t m, RotatedLines<T>& left, RotatedLines<T>& right) {
  const double shift = smaller_singular_value(d[m - 1], e[m - 1], d[m]);
  const double lead = std::abs(d[0]), relative = lead > 0 ? shift / lead : 0;
  double r = 0;
  if (relative * relative < std::numeric_limits<double>::epsilon()) {  // without a shift: Demmel and Kahan, 1990
    Rotation<double> inner{1, 0}, outer{1, 0};
    for (int64_t i = 0; i < m; ++i) {
      inner = rotation_of(d[i] * inner.c, e[i], r);
      if (i > 0) e[i - 1] = outer.s * r;
      outer = rotation_of(outer.c * r, d[i + 1] * inner.s, d[i]);
      right.add(inner);
      left.add(outer);
    }
    const double h = d[m] * inner.c;
    d[m] = h * outer.c;
    e[m - 1] = h * outer.s;
    return;
  }
  double f = (lead - shift) * (std::copysign(1.0, d[0]) + shift / d[0]), g = e[0];
  for (int64_t i = 0; i < m; ++i) {
    const Rotation<double> inner = rotation_of(f, g, r);
    if (i > 0) e[i - 1] = r;
    f = inner.c * d[i] + inner.s * e[i];
    e[i] = inner.c * e[i] - inner.s * d[i];
    g = inner.s * d[i + 1];
    d[i + 1] *= inner.c;
    const Rotation<double> outer = rotation_of(f, g, d[i]);
    f = outer.c * e[i] + outer.s * d[i + 1];
    d[i + 1] = outer.c * d[i + 1] - outer.s * e[i];
    if (i < m - 1) {
      g = outer.s * e[i + 1];
      e[i + 1] *= outer.c;
    }
    right.add(inner);
    left.add(outer);
  }
  e[m - 1] = f;
}

/// Makes the bidiagonal matrix diagonal; the lines of `left` and `right` become its singular vectors. False if that
/// takes too many steps.
template <class T>
bool diagonalize(Buffer<double>& d, Buffer<double>& e, RotatedLines<T>& left, RotatedLines<T>& right) {
  const double eps = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const auto negligible = [&](int64_t i) {
    const auto k = static_cast<std::size_t>(i);
    return std::abs(e[k]) <= eps * (std::abs(d[k]) + std::abs(d[k + 1])) || std::abs(e[k]) < 1e-290;
  };
  const auto n = static_cast<int64_t>(d.size());
  int64_t bottom = n - 1, block_top = n, steps = 0;
  bool forward = true;
  while (bottom > 0) {
    if (negligible(bottom - 1)) {
      e[static_cast<std::size_t>(--bottom)] = 0;
      continue;
    }
    int64_t top = bottom - 1;
    while (top > 0 && !negligible(top - 1)) --top;
    if (top > 0) e[static_cast<std::size_t>(top - 1)] = 0;
    if (++steps > kSteps * n) return false;
    double *first = &d[static_cast<std::size_t>(top)], *last = &d[static_cast<std::size_t>(bottom)];
    if (bottom < block_top) {
      // Downwards from the larger end. Upwards it is a step on the transposed matrix, whose sides are exchanged.
      forward = std::abs(*first) >= std::abs(*last);
      block_top = top;
    }
    const int64_t step = forward ? 1 : -1;
    left.begin(forward ? top : bottom, step);
    right.begin(forward ? top : bottom, step);
    qr_step({forward ? first : last, step}, {&e[static_cast<std::size_t>(forward ? top : bottom - 1)], step},
            bottom - top, forward ? left : right, forward ? right : left);
  }
  left.apply();
  right.apply();
  return true;
}

}  // namespace
}  // namespace cpu::linalg

namespace linalg {

using namespace cpu::linalg;

template <class T>
bool svd(const T* a, int64_t m, int64_t n, T* u, T* s, T* vh) {
  const bool tall = m >= n;
  const int64_t k = std::min(m, n), height = std::max(m, n);
  const T scale = scale_of(a, m * n);
  if (scale == T(0)) return false;
  // The columns of A or, where A is wide, of its transpose; R of their QR factorization is reduced.
  Buffer<T> columns(static_cast<std::size_t>(m * n)), r(static_cast<std::size_t>(k * k));
  if (tall)
    transpose_into(columns.data(), m, a, n, m, n);
  else
    std::copy(a, a + m * n, columns.begin());
  for (T& x : columns) x *= scale;
  const Reflectors<T> outer = factor_columns(columns.data(), height, k);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < k; ++j)
      r[static_cast<std::size_t>(i * k + j)] = columns[static_cast<std::size_t>(j * height + i)];
  Buffer<double> d(static_cast<std::size_t>(k)), e(d.size());
  Reflectors<T> q(k, k), p(k, k);
  bidiagonalize(r.data(), k, d.data(), e.data(), q, p);
  RotatedLines<T> left(q.first_rows(k), k), right(p.first_rows(k), k);
  if (!diagonalize(d, e, left, right)) return false;
  Buffer<T> outer_left(static_cast<std::size_t>(k * height));
  int64_t row = 0;
  Buffer<T> inner_right(static_cast<std::size_t>(k * k));
  for (const std::size_t i : order(d, [](double x, double y) { return std::abs(x) > std::abs(y); })) {
    const auto line = static_cast<int64_t>(i);
    s[row] = static_cast<T>(std::abs(d[i])) / scale;
    std::copy(left.line(line), left.line(line) + k, outer_left.data() + row * height);
    const T sign = d[i] < 0 ? T(-1) : T(1);
    for (int64_t j = 0; j < k; ++j) inner_right[static_cast<std::size_t>(row * k + j)] = sign * right.line(line)[j];
    ++row;
  }
  outer.apply_inverse(outer_left.data(), k);
  if (tall) {
    transpose_into(u, k, outer_left.data(), height, k, height);
    std::copy(inner_right.begin(), inner_right.end(), vh);
  } else {
    transpose_into(u, k, inner_right.data(), k, k, k);
    std::copy(outer_left.begin(), outer_left.end(), vh);
  }
  return true;
}

template bool svd(const float*, int64_t, int64_t, float*, float*, float*);
template bool svd(const double*, int64_t, int64_t, double*, double*, double*);

}  // namespace linalg
}  // namespace levin::kernels
