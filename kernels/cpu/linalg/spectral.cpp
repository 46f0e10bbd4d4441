// Eigenvalues of symmetric matrices and singular values: reflections reduce the matrix to a tridiagonal or bidiagonal
// one, which rotations make diagonal (Golub and Van Loan, Matrix Computations, chapter 8; the steps are those of
// LAPACK's steqr and bdsqr). The iterations compute in double for both types; the rotations of many steps are collected
// and then applied to the vectors at once.

#include "kernels/cpu/linalg/reflectors.h"

#include <levin/core/parallel.h>
#include <levin/kernels/linalg/factorizations.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace levin::kernels {

namespace cpu::linalg {

namespace {

constexpr int64_t kTasks = 64;               // columns of the vectors per task
constexpr std::size_t kCollected = 1 << 15;  // rotations that are applied at once
constexpr int64_t kSteps = 60;               // per element; most need two

/// (c, s) and r with (f, g) rotated to (r, 0).
Rotation<double> rotation_of(double f, double g, double& r) {
  if (g == 0) return r = f, Rotation<double>{1, 0};
  const double squares = f * f + g * g;
  r = squares > 1e-280 ? std::sqrt(squares) : std::hypot(f, g);
  const double inverse = 1 / r;
  return {f * inverse, g * inverse};
}

/// Vectors, one a line, and the rotations that wait to be applied to them.
template <class T>
class RotatedLines {
 public:
  RotatedLines(std::vector<T> lines, int64_t columns) : lines_(std::move(lines)), columns_(columns) {}

  /// Begins a chain of rotations at line `first`.
  void begin(int64_t first, int64_t step) {
    if (list_.size() > kCollected) apply();
    chains_.push_back({first, step, static_cast<int64_t>(list_.size()), 0});
  }
  void add(Rotation<double> r) {
    list_.push_back({static_cast<T>(r.c), static_cast<T>(r.s)});
    ++chains_.back().count;
  }
  void apply() {
    parallel_for(0, columns_, kTasks, [&](int64_t b, int64_t e) {
      rotate(lines_.data() + b, columns_, e - b, chains_.data(), static_cast<int64_t>(chains_.size()), list_.data());
    });
    list_.clear();
    chains_.clear();
  }
  T* line(int64_t i) { return lines_.data() + i * columns_; }

 private:
  std::vector<T> lines_;
  int64_t columns_;
  std::vector<Chain> chains_;
  std::vector<Rotation<T>> list_;
};

/// Elements of a diagonal, counted from either end.
struct Walk {
  double* p;
  int64_t step;
  double& operator[](int64_t i) const { return p[i * step]; }
};

/// A power of two by which the largest magnitude of a (n) becomes about 1, or 1 if it is in a safe range; 0 if a value
/// is not finite.
template <class T>
T scale_of(const T* a, int64_t n) {
  T largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(a[i])) return T(0);
    largest = std::max(largest, std::abs(a[i]));
  }
  const T wide = std::ldexp(T(1), std::numeric_limits<T>::max_exponent / 4);
  if (largest == T(0) || (largest < wide && largest > 1 / wide)) return T(1);
  using Limits = std::numeric_limits<T>;
  return std::ldexp(T(1), std::clamp(-std::ilogb(largest), Limits::min_exponent, Limits::max_exponent - 1));
}

/// Writes w_j = tau (A - V W^T - W V^T) v of reflection j, less the multiple of v with which H A H = A - v w^T - w v^T.
/// V and W (lines of w) belong to the reflections from `begin` on, whose updates a does not have yet.
template <class T>
void update_vector(const T* a, int64_t n, int64_t begin, int64_t j, Reflectors<T>& q, T* w) {
  const int64_t next = j + 1, rest = n - next;
  const T *v = q.line(j) + next, tau = q.tau[static_cast<std::size_t>(j)];
  T* wj = w + (j - begin) * n + next;
  parallel_for(0, rest, std::max<int64_t>(16, 65536 / rest),
               [&](int64_t b, int64_t to) { products(a + (next + b) * n + next, n, to - b, rest, v, wj + b); });
  for (int64_t l = begin; l < j; ++l) {
    const T *vl = q.line(l) + next, *wl = w + (l - begin) * n + next;
    const T by_w = product(rest, wl, v), by_v = product(rest, vl, v);
    add_scaled(rest, -by_w, vl, wj);
    add_scaled(rest, -by_v, wl, wj);
  }
  for (int64_t i = 0; i < rest; ++i) wj[i] *= tau;
  add_scaled(rest, T(-0.5) * tau * product(rest, wj, v), v, wj);
}

/// Reduces the symmetric a (n, n) to Q T Q^T, with the diagonal d (n) and the off-diagonal e (n - 1) of T. Column by
/// column in blocks, whose updates of the rest are products.
template <class T>
Reflectors<T> tridiagonalize(T* a, int64_t n, double* d, double* e) {
  Reflectors<T> q(std::max<int64_t>(n - 1, 0), n);
  std::vector<T> w(static_cast<std::size_t>(kReflectorBlock * n));
  for (int64_t begin = 0; begin < n; begin += kReflectorBlock) {
    const int64_t end = std::min(begin + kReflectorBlock, n);
    for (int64_t j = begin; j < end; ++j) {
      T* row = a + j * n;
      for (int64_t l = begin; l < j; ++l) {
        const T *v = q.line(l), *wl = w.data() + (l - begin) * n;
        add_scaled(n - j, -wl[j], v + j, row + j);
        add_scaled(n - j, -v[j], wl + j, row + j);
      }
      d[j] = static_cast<double>(row[j]);
      if (j == n - 1) return q;
      std::copy(row + j + 1, row + n, q.line(j) + j + 1);
      e[j] = static_cast<double>(reflect(q.line(j) + j + 1, n - j - 1, q.tau[static_cast<std::size_t>(j)]));
      update_vector(a, n, begin, j, q, w.data());
    }
    const int64_t rest = n - end, k = end - begin;
    const T *v = q.line(begin) + end, *ws = w.data() + end;
    for (const auto& [left, right] : {std::pair(v, ws), std::pair(ws, v)})
      gemm({.m = rest,
            .n = rest,
            .k = k,
            .a = left,
            .a_rs = 1,
            .a_cs = n,
            .b = right,
            .b_rs = n,
            .b_cs = 1,
            .c = a + end * n + end,
            .c_rs = n,
            .alpha = T(-1),
            .beta = T(1)});
  }
  return q;
}

/// One implicit step of QL on d[0..m] and e[0..m-1], with the shift of the first two elements.
template <class T>
void ql_step(Walk d, Walk e, int64_t m, RotatedLines<T>& vectors) {
  const double ratio = (d[1] - d[0]) / (2 * e[0]), root = std::hypot(ratio, 1.0);
  double g = d[m] - d[0] + e[0] / (ratio + std::copysign(root, ratio)), p = 0;
  Rotation<double> turn{1, 1};
  for (int64_t i = m - 1; i >= 0; --i) {
    const double f = turn.s * e[i], b = turn.c * e[i];
    double r = 0;
    turn = rotation_of(g, f, r);
    if (i != m - 1) e[i + 1] = r;
    g = d[i + 1] - p;
    r = (d[i] - g) * turn.s + 2 * turn.c * b;
    p = turn.s * r;
    d[i + 1] = g + p;
    g = turn.c * r - b;
    vectors.add(turn);
  }
  d[0] -= p;
  e[0] = g;
}

/// Makes the tridiagonal matrix diagonal; the lines of `vectors` become its eigenvectors. False if that takes too many
/// steps.
template <class T>
bool diagonalize(std::vector<double>& d, std::vector<double>& e, RotatedLines<T>& vectors) {
  const double eps = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const auto negligible = [&](int64_t i) {
    const auto k = static_cast<std::size_t>(i);
    return std::abs(e[k]) <= eps * std::sqrt(std::abs(d[k])) * std::sqrt(std::abs(d[k + 1])) || std::abs(e[k]) < 1e-290;
  };
  const auto n = static_cast<int64_t>(d.size());
  int64_t top = 0, block_end = -1, steps = 0;
  bool forward = true;
  while (top < n - 1) {
    if (negligible(top)) {
      e[static_cast<std::size_t>(top++)] = 0;
      continue;
    }
    int64_t bottom = top + 1;  // the last element of the block that begins at `top`
    while (bottom < n - 1 && !negligible(bottom)) ++bottom;
    if (++steps > kSteps * n) return false;
    double *first = &d[static_cast<std::size_t>(top)], *last = &d[static_cast<std::size_t>(bottom)];
    if (top > block_end) {
      // From the end with the smaller element, so that graded matrices keep their small eigenvalues.
      forward = std::abs(*first) <= std::abs(*last);
      block_end = bottom;
    }
    const int64_t step = forward ? 1 : -1, m = bottom - top;
    vectors.begin(forward ? bottom : top, -step);
    ql_step({forward ? first : last, step}, {&e[static_cast<std::size_t>(forward ? top : bottom - 1)], step}, m,
            vectors);
  }
  vectors.apply();
  return true;
}

/// Reduces a (n, n) to Q B P^T with the upper bidiagonal B of diagonal d (n) and e (n - 1) above it.
template <class T>
void bidiagonalize(T* a, int64_t n, double* d, double* e, Reflectors<T>& q, Reflectors<T>& p) {
  std::vector<T> sums(static_cast<std::size_t>(4 * n));
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
bool diagonalize(std::vector<double>& d, std::vector<double>& e, RotatedLines<T>& left, RotatedLines<T>& right) {
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

/// The order of `values` by `less`.
template <class Less>
std::vector<std::size_t> order(const std::vector<double>& values, Less less) {
  std::vector<std::size_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::stable_sort(indices.begin(), indices.end(), [&](auto i, auto j) { return less(values[i], values[j]); });
  return indices;
}

}  // namespace
}  // namespace cpu::linalg

namespace linalg {

using namespace cpu::linalg;

template <class T>
bool eigh(const T* a, int64_t n, T* w, T* v) {
  std::vector<T> full(static_cast<std::size_t>(n * n));
  transpose_into(full.data(), n, a, n, n, n);  // the lower triangle, of which a copy follows
  for (int64_t i = 0; i < n; ++i) std::copy(a + i * n, a + i * n + i, full.data() + i * n);
  const T scale = scale_of(full.data(), n * n);
  if (scale == T(0)) return false;
  for (T& x : full) x *= scale;
  std::vector<double> d(static_cast<std::size_t>(n)), e(d.size());
  Reflectors<T> q = tridiagonalize(full.data(), n, d.data(), e.data());
  RotatedLines<T> vectors(q.first_rows(n), n);
  if (!diagonalize(d, e, vectors)) return false;
  int64_t row = 0;
  for (const std::size_t k : order(d, std::less<>())) {
    w[row] = static_cast<T>(d[k]) / scale;
    const T* line = vectors.line(static_cast<int64_t>(k));
    std::copy(line, line + n, full.data() + row++ * n);
  }
  transpose_into(v, n, full.data(), n, n, n);
  return true;
}

template <class T>
bool svd(const T* a, int64_t m, int64_t n, T* u, T* s, T* vh) {
  const bool tall = m >= n;
  const int64_t k = std::min(m, n), height = std::max(m, n);
  const T scale = scale_of(a, m * n);
  if (scale == T(0)) return false;
  // The columns of A or, where A is wide, of its transpose; R of their QR factorization is reduced.
  std::vector<T> columns(static_cast<std::size_t>(m * n)), r(static_cast<std::size_t>(k * k));
  if (tall)
    transpose_into(columns.data(), m, a, n, m, n);
  else
    std::copy(a, a + m * n, columns.begin());
  for (T& x : columns) x *= scale;
  const Reflectors<T> outer = factor_columns(columns.data(), height, k);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < k; ++j)
      r[static_cast<std::size_t>(i * k + j)] = columns[static_cast<std::size_t>(j * height + i)];
  std::vector<double> d(static_cast<std::size_t>(k)), e(d.size());
  Reflectors<T> q(k, k), p(k, k);
  bidiagonalize(r.data(), k, d.data(), e.data(), q, p);
  RotatedLines<T> left(q.first_rows(k), k), right(p.first_rows(k), k);
  if (!diagonalize(d, e, left, right)) return false;
  std::vector<T> outer_left(static_cast<std::size_t>(k * height));
  int64_t row = 0;
  std::vector<T> inner_right(static_cast<std::size_t>(k * k));
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

template bool eigh(const float*, int64_t, float*, float*);
template bool eigh(const double*, int64_t, double*, double*);
template bool svd(const float*, int64_t, int64_t, float*, float*, float*);
template bool svd(const double*, int64_t, int64_t, double*, double*, double*);

}  // namespace linalg
}  // namespace levin::kernels
