// Householder reflections and the QR factorization (Golub and Van Loan, Matrix Computations, chapter 5).

#include "kernels/cpu/linalg/reflectors.h"

#include <levin/kernels/linalg/factorizations.h>

#include <array>
#include <cmath>

namespace levin::kernels {

namespace cpu::linalg {

namespace {

/// The Euclidean norm, also where squares leave double's range.
template <class T>
double norm(const T* x, int64_t n) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  if (squares > 1e-280 && squares < 1e300) return std::sqrt(squares);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum = std::hypot(sum, static_cast<double>(x[i]));
  return sum;
}

}  // namespace

template <class T>
T reflect(T* x, int64_t n, T& tau) {
  const double alpha = static_cast<double>(x[0]), rest = norm(x + 1, n - 1);
  x[0] = T(1);
  tau = T(0);
  if (rest == 0) return static_cast<T>(alpha);
  const double beta = -std::copysign(std::hypot(alpha, rest), alpha);
  for (int64_t i = 1; i < n; ++i) x[i] = static_cast<T>(static_cast<double>(x[i]) / (alpha - beta));
  tau = static_cast<T>((beta - alpha) / beta);
  return static_cast<T>(beta);
}

template <class T>
void Reflectors<T>::apply_block(int64_t begin, int64_t end, T* x, int64_t rows, bool inverse) const {
  const int64_t k = end - begin;
  if (k <= 0 || rows == 0) return;
  const T* lines = v.data() + begin * width + begin;  // the lines are zero before `begin`
  const int64_t n = width - begin;
  // Q_b = I - V^T t V with the upper triangular t (k, k).
  Buffer<T> gram(static_cast<std::size_t>(k * k)), t(static_cast<std::size_t>(k * k));
  gemm({.m = k,
        .n = k,
        .k = n,
        .a = lines,
        .a_rs = width,
        .a_cs = 1,
        .b = lines,
        .b_rs = 1,
        .b_cs = width,
        .c = gram.data(),
        .c_rs = k});
  const auto at = [k](Buffer<T>& m, int64_t i, int64_t j) -> T& { return m[static_cast<std::size_t>(i * k + j)]; };
  for (int64_t j = 0; j < k; ++j) {
    const T scale = tau[static_cast<std::size_t>(begin + j)];
    at(t, j, j) = scale;
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      for (int64_t l = i; l < j; ++l) sum += at(t, i, l) * at(gram, l, j);
      at(t, i, j) = -scale * sum;
    }
  }
  Buffer<T> w(static_cast<std::size_t>(rows * k)), wt(w.size());
  gemm({.m = rows,
        .n = k,
        .k = n,
        .a = x + begin,
        .a_rs = width,
        .a_cs = 1,
        .b = lines,
        .b_rs = 1,
        .b_cs = width,
        .c = w.data(),
        .c_rs = k});
  gemm({.m = rows,
        .n = k,
        .k = k,
        .a = w.data(),
        .a_rs = k,
        .a_cs = 1,
        .b = t.data(),
        .b_rs = inverse ? 1 : k,
        .b_cs = inverse ? k : 1,
        .c = wt.data(),
        .c_rs = k});
  gemm({.m = rows,
        .n = n,
        .k = k,
        .a = wt.data(),
        .a_rs = k,
        .a_cs = 1,
        .b = lines,
        .b_rs = width,
        .b_cs = 1,
        .c = x + begin,
        .c_rs = width,
        .alpha = T(-1),
        .beta = T(1)});
}

template <class T>
void Reflectors<T>::apply_inverse(T* x, int64_t rows) const {
  for (int64_t end = count; end > 0;) {
    const int64_t begin = (end - 1) / kReflectorBlock * kReflectorBlock;
    apply_block(begin, end, x, rows, true);
    end = begin;
  }
}

template <class T>
Buffer<T> Reflectors<T>::first_rows(int64_t rows) const {
  Buffer<T> x(static_cast<std::size_t>(rows * width));
  for (int64_t i = 0; i < rows; ++i) x[static_cast<std::size_t>(i * width + i)] = T(1);
  apply_inverse(x.data(), rows);
  return x;
}

template <class T>
Reflectors<T> factor_columns(T* lines, int64_t m, int64_t n) {
  Reflectors<T> q(std::min(m, n), m);
  std::array<T, kReflectorBlock> along{};  // products of the other columns of a block and v
  for (int64_t begin = 0; begin < q.count; begin += kReflectorBlock) {
    const int64_t end = std::min(begin + kReflectorBlock, q.count);
    for (int64_t j = begin; j < end; ++j) {
      T *column = lines + j * m, *v = q.line(j), &tau = q.tau[static_cast<std::size_t>(j)];
      std::copy(column + j, column + m, v + j);
      std::fill(column + j, column + m, T(0));
      column[j] = reflect(v + j, m - j, tau);
      T* others = column + m + j;
      products(others, m, end - j - 1, m - j, v + j, along.data());
      for (int64_t i = 0; i < end - j - 1; ++i)
        add_scaled(m - j, -tau * along[static_cast<std::size_t>(i)], v + j, others + i * m);
    }
    q.apply_block(begin, end, lines + end * m, n - end, false);
  }
  return q;
}

template struct Reflectors<float>;
template struct Reflectors<double>;
template float reflect(float*, int64_t, float&);
template double reflect(double*, int64_t, double&);
template Reflectors<float> factor_columns(float*, int64_t, int64_t);
template Reflectors<double> factor_columns(double*, int64_t, int64_t);

}  // namespace cpu::linalg

template <class T>
void linalg::qr(const T* a, int64_t m, int64_t n, T* q, T* r) {
  const int64_t k = std::min(m, n);
  cpu::linalg::Buffer<T> columns(static_cast<std::size_t>(m * n));
  cpu::linalg::transpose_into(columns.data(), m, a, n, m, n);
  const auto reflectors = cpu::linalg::factor_columns(columns.data(), m, n);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) r[i * n + j] = columns[static_cast<std::size_t>(j * m + i)];
  cpu::linalg::transpose_into(q, k, reflectors.first_rows(k).data(), m, k, m);
}

template void linalg::qr(const float*, int64_t, int64_t, float*, float*);
template void linalg::qr(const double*, int64_t, int64_t, double*, double*);

}  // namespace levin::kernels
