#pragma once
// The mask and the dropout of attention's score blocks.

#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/scratch.h"

#include <levin/kernels/attention.h>
#include <levin/kernels/random.h>

#include <algorithm>
#include <array>
#include <limits>

namespace levin::kernels::cpu {

/// Scores are computed in blocks of about 64 x 256. A small remainder is shared among the blocks, so 65 rows are one.
inline constexpr int64_t kMostRows = 95, kMostColumns = 320;

/// Returns the rows of each block of `rows` rows but the last.
inline int64_t row_block(int64_t rows) {
  const int64_t blocks = std::max<int64_t>(1, (rows + 32) / 64);
  return std::max<int64_t>(1, (rows + blocks - 1) / blocks);
}

/// Returns the columns of each block of `columns` columns but the last: a multiple of 4, as random numbers are drawn by
/// four.
inline int64_t column_block(int64_t columns) {
  const int64_t blocks = std::max<int64_t>(1, (columns + 191) / 256);
  return std::max<int64_t>(4, ((columns + blocks - 1) / blocks + 3) / 4 * 4);
}

/// Returns matrix number `n` over the leading axes of a tensor.
template <class T>
Matrix<T> matrix_at(const TensorView& t, int64_t n) {
  const int lead = t.dim() - 2;
  T* p = static_cast<T*>(t.pointer);
  for (int d = lead - 1; d >= 0; --d) {
    p += n % t.size(d) * t.stride(d);
    n /= t.size(d);
  }
  return {p, t.stride(lead)};
}

/// The mask of problem `n`, whose scores have `rows` rows and `columns` columns.
template <class T>
class BlockMask {
 public:
  BlockMask(const AttentionMask& m, int64_t n, int64_t rows, int64_t columns)
      : columns_(columns), dropout_(m.dropout), seed_(m.random.now().seed), blocks_(attention_random_blocks(columns)) {
    counter_ = m.random.now().offset + static_cast<std::uint64_t>(n * rows) * blocks_;
    if (!m.has_scores()) return;
    if (m.scores.dtype == DType::boolean)
      choice_ = matrix_at<const bool>(m.scores, n);
    else
      added_ = matrix_at<const T>(m.scores, n);
    column_step_ = m.scores.stride(m.scores.dim() - 1);
  }

  /// Adds the mask to the scores of a block that begins at row i0 and column j0.
  void apply(const ScoreBlock<T>& block, int64_t i0, int64_t j0) const {
    if (!masked()) return;
    std::array<T, kMostColumns> space;
    const bool same = (choice_.data ? choice_.step : added_.step) == 0;  // for all rows, as a mask of padded keys
    const T* bias = nullptr;
    for (int64_t r = 0; r < block.rows; ++r) {
      if (r == 0 || !same) bias = row(i0 + r, j0, block.columns, space.data());
      attention_rows<T>().shift(block.scores + r * block.step, bias, block.columns);
    }
  }

  /// Gives rows whose scores are all hidden a result of 0. Rows whose scores are -infinity by themselves keep NaN.
  void finish(int64_t i0, int64_t rows, const T* peak, Matrix<T> out, int64_t width, T* lse) const {
    if (!masked()) return;
    for (int64_t r = 0; r < rows; ++r) {
      if (peak[r] != -std::numeric_limits<T>::infinity() || !hides_all(i0 + r)) continue;
      std::fill_n(out.from_row(r).data, width, T(0));
      lse[r] = std::numeric_limits<T>::infinity();
    }
  }

  /// Draws the random numbers of a block, which drop() uses.
  void draw(int64_t i0, int64_t j0, int64_t rows, int64_t columns) {
    if (dropout_ == 0.0) return;
    words_ = scratch<std::uint32_t>(Slot::attention_words, kMostRows * kMostColumns);
    for (int64_t r = 0; r < rows; ++r)
      random_words_of(seed_,
                      counter_ + static_cast<std::uint64_t>(i0 + r) * blocks_ + static_cast<std::uint64_t>(j0 / 4),
                      (columns + 3) / 4, words_ + r * kMostColumns);
  }
  /// Drops elements of a block of weights, or of gradients.
  void drop(T* x, int64_t rows, int64_t columns, int64_t step) const {
    if (dropout_ == 0.0) return;
    for (int64_t r = 0; r < rows; ++r)
      attention_rows<T>().drop(x + r * step, words_ + r * kMostColumns, columns, dropout_limit(dropout_),
                               static_cast<T>(dropout_factor(dropout_)));
  }

 private:
  bool masked() const { return choice_.data || added_.data; }

  /// Returns what is added to `n` scores of a row, in place or in `space`.
  const T* row(int64_t i, int64_t j, int64_t n, T* space) const {
    if (choice_.data) {
      const bool* chosen = choice_.data + i * choice_.step + j * column_step_;
      for (int64_t c = 0; c < n; ++c) space[c] = chosen[c * column_step_] ? T(0) : -std::numeric_limits<T>::infinity();
      return space;
    }
    const T* added = added_.data + i * added_.step + j * column_step_;
    if (column_step_ == 1) return added;
    std::fill_n(space, n, *added);
    return space;
  }

  bool hides_all(int64_t i) const {
    std::array<T, kMostColumns> space;
    for (int64_t j = 0; j < columns_; j += kMostColumns) {
      const int64_t n = std::min(kMostColumns, columns_ - j);
      const T* bias = row(i, j, n, space.data());
      if (!std::all_of(bias, bias + n, [](T b) { return b == -std::numeric_limits<T>::infinity(); })) return false;
    }
    return true;
  }

  Matrix<const bool> choice_{nullptr, 0};
  Matrix<const T> added_{nullptr, 0};
  int64_t columns_, column_step_ = 1;
  double dropout_;
  std::uint64_t seed_, blocks_, counter_;
  std::uint32_t* words_ = nullptr;
};

}  // namespace levin::kernels::cpu
