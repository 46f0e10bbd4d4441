#pragma once
// Row functions of attention's score blocks, for the instruction set in use.

#include <levin/core/dtype.h>

#include <cstdint>

namespace levin::kernels::cpu {

/// A (rows, width) matrix with unit stride along a row.
template <class T>
struct Matrix {
  T* data;
  int64_t step;
  Matrix from_row(int64_t row) const { return {data + row * step, step}; }
};

/// A block of scores (rows, columns), rows `step` apart. In row r the first valid(r) columns take part.
template <class T>
struct ScoreBlock {
  T* scores;
  int64_t rows, columns, step;
  int64_t first_valid;  ///< columns of row 0 that take part; below `columns` only with a causal mask
  bool causal;          ///< each further row attends to one more column

  int64_t valid(int64_t row) const {
    if (!causal) return columns;
    const int64_t n = first_valid + row;
    return n < 0 ? 0 : n < columns ? n : columns;
  }
};

template <class T>
struct AttentionRows {
  /// Adds `bias` to n scores; where it is -infinity, the score becomes -infinity, even if it was NaN.
  void (*shift)(T* scores, const T* bias, int64_t n);
  /// Sets elements whose word has 24 upper bits below `limit` to zero, and multiplies the others by `factor`.
  void (*drop)(T* x, const std::uint32_t* words, int64_t n, std::uint32_t limit, T factor);
  /// Performs one step of the online softmax: scores become exp(score - peak), 0 where masked; peak and sum (rows) are
  /// updated, and the rows (width) of `out`, summed so far, are rescaled to the new peak unless this is the first
  /// block.
  void (*advance)(const ScoreBlock<T>& block, T* peak, T* sum, Matrix<T> out, int64_t width, bool first);
  /// Computes out (rows, width) /= sum and lse = peak + log(sum).
  void (*finish)(int64_t rows, const T* peak, const T* sum, Matrix<T> out, int64_t width, T* lse);
  /// Computes sums[r] = sum of a[r] b[r] over `width` elements.
  void (*dot)(int64_t rows, int64_t width, Matrix<T> a, Matrix<T> b, T* sums);
  /// Turns scores into P = exp(score - lse), and those of `dp`, of the same geometry, into dS = P (dp - delta); 0 where
  /// masked.
  void (*differentiate)(const ScoreBlock<T>& block, T* dp, const T* lse, const T* delta);
};

template <class T>
const AttentionRows<T>& attention_rows();

}  // namespace levin::kernels::cpu
