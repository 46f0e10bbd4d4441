#pragma once
// Householder reflections H = I - tau v v^T, and products of many of them as matrix products (the compact WY form of
// Schreiber and Van Loan, 1989).

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/linalg/buffer.h"
#include "kernels/cpu/linalg/lines.h"

#include <algorithm>
#include <cstdint>

namespace levin::kernels::cpu::linalg {

inline constexpr int64_t kReflectorBlock = 32;

/// Makes v, with v[0] = 1, of x (n) in place, and tau, so that H x = (beta, 0, ..., 0); returns beta.
template <class T>
T reflect(T* x, int64_t n, T& tau);

/// Reflections H_0, H_1, ... of one width; Q is their product in this order.
template <class T>
struct Reflectors {
  int64_t count, width;
  Buffer<T> v = Buffer<T>(static_cast<std::size_t>(count * width));  // (count, width), zero before each v
  Buffer<T> tau = Buffer<T>(static_cast<std::size_t>(count));

  Reflectors(int64_t number, int64_t size) : count(number), width(size) {}

  T* line(int64_t i) { return v.data() + i * width; }
  /// X (rows, width) becomes X Q_b for the product Q_b of reflections [begin, end), or X Q_b^T.
  void apply_block(int64_t begin, int64_t end, T* x, int64_t rows, bool inverse) const;
  /// X (rows, width) becomes X Q^T.
  void apply_inverse(T* x, int64_t rows) const;
  /// Q^T's first rows, (rows, width).
  Buffer<T> first_rows(int64_t rows) const;
};

/// Replaces `lines` (n, m), the columns of A (m, n), by those of R, below whose diagonal it leaves zeros; returns the
/// min(m, n) reflections of Q.
template <class T>
Reflectors<T> factor_columns(T* lines, int64_t m, int64_t n);

}  // namespace levin::kernels::cpu::linalg
