// Eigenvalues of symmetric matrices: reflections reduce the matrix to a tridiagonal one (Golub and Van Loan, Matrix
// Computations, chapter 8), whose eigenvectors they take back.

#include "kernels/cpu/linalg/reflectors.h"
#include "kernels/cpu/linalg/tridiagonal.h"

#include <levin/kernels/linalg/factorizations.h>

#include <array>

namespace levin::kernels {

namespace cpu::linalg {

namespace {

/// Writes w_j = tau (A - V W^T - W V^T) v of reflection j, less the multiple of v with which H A H = A - v w^T - w v^T.
/// V and W (lines of w) belong to the reflections from `begin` on, whose updates a does not have yet.
template <class T>
void update_vector(const T* a, int64_t n, int64_t begin, int64_t j, Reflectors<T>& q, T* w) {
  const int64_t next = j + 1, rest = n - next;
  const T *v = q.line(j) + next, tau = q.tau[static_cast<std::size_t>(j)];
  T* wj = w + (j - begin) * n + next;
  parallel_for(0, rest, std::max<int64_t>(16, 65536 / rest),
               [&](int64_t b, int64_t to) { products(a + (next + b) * n + next, n, to - b, rest, v, wj + b); });
  const T *vs = q.line(begin) + next, *ws = w + next;
  std::array<T, kReflectorBlock> along;
  products(ws, n, j - begin, rest, v, along.data());
  subtract_lines(j - begin, rest, along.data(), 1, vs, n, wj);
  products(vs, n, j - begin, rest, v, along.data());
  subtract_lines(j - begin, rest, along.data(), 1, ws, n, wj);
  for (int64_t i = 0; i < rest; ++i) wj[i] *= tau;
  add_scaled(rest, T(-0.5) * tau * product(rest, wj, v), v, wj);
}

/// Reduces the symmetric a (n, n) to Q T Q^T, with the diagonal d (n) and the off-diagonal e (n - 1) of T. Column by
/// column in blocks, whose updates of the rest are products.
template <class T>
Reflectors<T> tridiagonalize(T* a, int64_t n, double* d, double* e) {
  Reflectors<T> q(std::max<int64_t>(n - 1, 0), n);
  Buffer<T> w(static_cast<std::size_t>(kReflectorBlock * n));
  for (int64_t begin = 0; begin < n; begin += kReflectorBlock) {
    const int64_t end = std::min(begin + kReflectorBlock, n);
    for (int64_t j = begin; j < end; ++j) {
      T* row = a + j * n;
      const T *v = q.line(begin) + j, *ws = w.data() + j;
      subtract_lines(j - begin, n - j, ws, n, v, n, row + j);
      subtract_lines(j - begin, n - j, v, n, ws, n, row + j);
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

}  // namespace
}  // namespace cpu::linalg

namespace linalg {

using namespace cpu::linalg;

template <class T>
bool eigh(const T* a, int64_t n, T* w, T* v) {
  Buffer<T> full(static_cast<std::size_t>(n * n));
  transpose_into(full.data(), n, a, n, n, n);  // the lower triangle, of which a copy follows
  for (int64_t i = 0; i < n; ++i) std::copy(a + i * n, a + i * n + i, full.data() + i * n);
  const T scale = scale_of(full.data(), n * n);
  if (scale == T(0)) return false;
  for (T& x : full) x *= scale;
  Buffer<double> d(static_cast<std::size_t>(n)), e(d.size());
  Reflectors<T> q = tridiagonalize(full.data(), n, d.data(), e.data());
  Buffer<T> vectors;  // one a line
  if (n < kDivided) {
    RotatedLines<T> rotated(q.first_rows(n), n);
    if (!diagonalize(d.data(), e.data(), n, rotated)) return false;
    vectors = rotated.take();
  } else {
    vectors.resize(full.size());
    if (!divide_and_conquer(d.data(), e.data(), n, vectors.data())) return false;
    q.apply_inverse(vectors.data(), n);
  }
  int64_t row = 0;
  for (const std::size_t k : order(d, std::less<>())) {
    w[row] = static_cast<T>(d[k]) / scale;
    const T* line = vectors.data() + static_cast<int64_t>(k) * n;
    std::copy(line, line + n, full.data() + row++ * n);
  }
  transpose_into(v, n, full.data(), n, n, n);
  return true;
}

template bool eigh(const float*, int64_t, float*, float*);
template bool eigh(const double*, int64_t, double*, double*);

}  // namespace linalg
}  // namespace levin::kernels
