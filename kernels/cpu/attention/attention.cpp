// Attention by blocks: a task holds one block of scores at a time, and the order of each sum depends only on the shape.

#include "kernels/src/table.h"
#include "mask.h"

#include "kernels/cpu/gemm/gemm.h"

#include <levin/core/parallel.h>
#include <levin/kernels/attention.h>

#include <algorithm>

namespace levin::kernels {

namespace cpu {

namespace {

/// Computes c (m, n) = alpha a (m, k) b^T (n, k) + beta c.
template <class T>
void times_transposed(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, Matrix<T> c) {
  gemm(GemmArgs<T>{.m = m,
                   .n = n,
                   .k = k,
                   .a = a.data,
                   .a_rs = a.step,
                   .a_cs = 1,
                   .b = b.data,
                   .b_rs = 1,
                   .b_cs = b.step,
                   .c = c.data,
                   .c_rs = c.step,
                   .alpha = alpha});
}

/// Computes c (m, n) = alpha a (m, k) b (k, n), added to c unless `first`.
template <class T>
void times(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, Matrix<T> c, bool first) {
  gemm(GemmArgs<T>{.m = m,
                   .n = n,
                   .k = k,
                   .a = a.data,
                   .a_rs = a.step,
                   .a_cs = 1,
                   .b = b.data,
                   .b_rs = b.step,
                   .b_cs = 1,
                   .c = c.data,
                   .c_rs = c.step,
                   .alpha = alpha,
                   .beta = first ? T(0) : T(1)});
}

/// Computes c (m, n) = alpha a^T b with a (k, m) and b (k, n), added to c unless `first`.
template <class T>
void transposed_times(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, Matrix<T> c, bool first) {
  gemm(GemmArgs<T>{.m = m,
                   .n = n,
                   .k = k,
                   .a = a.data,
                   .a_rs = 1,
                   .a_cs = a.step,
                   .b = b.data,
                   .b_rs = b.step,
                   .b_cs = 1,
                   .c = c.data,
                   .c_rs = c.step,
                   .alpha = alpha,
                   .beta = first ? T(0) : T(1)});
}

/// Sizes of one problem: q (L, E), k (S, E), v (S, Ev).
struct Sizes {
  Sizes(const TensorView& q, const TensorView& k, const TensorView& v)
      : rows(q.size(q.dim() - 2)),
        columns(k.size(k.dim() - 2)),
        width(q.size(q.dim() - 1)),
        value_width(v.size(v.dim() - 1)),
        block_rows(row_block(rows)),
        block_columns(column_block(columns)) {
    for (int d = 0; d < q.dim() - 2; ++d) batch *= q.size(d);
  }
  int64_t batch = 1, rows, columns, width, value_width, block_rows, block_columns;
  int64_t row_blocks() const { return (rows + block_rows - 1) / block_rows; }
  int64_t column_blocks() const { return (columns + block_columns - 1) / block_columns; }
};

template <class T>
void forward_block(const AttentionArgs& a, const Sizes& s, int64_t n, int64_t i0, int64_t i1) {
  const AttentionRows<T>& ops = attention_rows<T>();
  const int64_t rows = i1 - i0, end = a.causal ? std::min(s.columns, i1) : s.columns;
  T* space = scratch<T>(Slot::attention, rows * (s.block_columns + 2));
  T *peak = space + rows * s.block_columns, *sum = peak + rows;
  const auto q = matrix_at<T>(a.q, n).from_row(i0), k = matrix_at<T>(a.k, n), v = matrix_at<T>(a.v, n);
  const auto out = matrix_at<T>(a.out, n).from_row(i0);
  BlockMask<T> mask(a.mask, n, s.rows, s.columns);
  for (int64_t j = 0; j < end; j += s.block_columns) {
    const int64_t columns = std::min(s.block_columns, end - j);
    const Matrix<T> scores{space, columns};
    const ScoreBlock<T> block{space, rows, columns, columns, i0 + 1 - j, a.causal};
    times_transposed(rows, columns, s.width, static_cast<T>(a.scale), q, k.from_row(j), scores);
    mask.apply(block, i0, j);
    ops.advance(block, peak, sum, out, s.value_width, j == 0);
    mask.draw(i0, j, rows, columns);
    mask.drop(space, rows, columns, columns);
    times(rows, s.value_width, columns, T(1), scores, v.from_row(j), out, j == 0);
  }
  T* lse = static_cast<T*>(a.lse.pointer) + n * s.rows + i0;
  ops.finish(rows, peak, sum, out, s.value_width, lse);
  mask.finish(i0, rows, peak, out, s.value_width, lse);
}

void attention(const AttentionArgs& a, Stream&) {
  const Sizes s(a.q, a.k, a.v);
  parallel_for(0, s.batch * s.row_blocks(), 1, [&](int64_t b, int64_t e) {
    for (int64_t task = b; task < e; ++task) {
      const int64_t i0 = task % s.row_blocks() * s.block_rows, i1 = std::min(s.rows, i0 + s.block_rows);
      if (a.q.dtype == DType::f64) forward_block<double>(a, s, task / s.row_blocks(), i0, i1);
      else forward_block<float>(a, s, task / s.row_blocks(), i0, i1);
    }
  });
}

/// Backward for one index of the leading axes.
template <class T>
class Backward {
 public:
  Backward(const AttentionBackwardArgs& a, const Sizes& s, int64_t n)
      : a_(a),
        s_(s),
        scale_(static_cast<T>(a.scale)),
        q_(matrix_at<T>(a.q, n)),
        k_(matrix_at<T>(a.k, n)),
        v_(matrix_at<T>(a.v, n)),
        g_(matrix_at<T>(a.g, n)),
        out_(matrix_at<T>(a.out, n)),
        dq_(matrix_at<T>(a.dq, n)),
        dk_(matrix_at<T>(a.dk, n)),
        dv_(matrix_at<T>(a.dv, n)),
        lse_(static_cast<T*>(a.lse.pointer) + n * s.rows),
        mask_(a.mask, n, s.rows, s.columns) {
    scores_ = scratch<T>(Slot::attention, s.block_rows * (2 * s.block_columns + 1));
    ds_ = scores_ + s.block_rows * s.block_columns;
    delta_ = ds_ + s.block_rows * s.block_columns;
  }

  /// Adds the contribution of row block i and column block j to dq's rows, and to those of dk and dv.
  void block(int64_t i, int64_t j, bool into_q, bool into_kv) {
    const int64_t i0 = i * s_.block_rows, rows = std::min(s_.block_rows, s_.rows - i0);
    const int64_t j0 = j * s_.block_columns, end = a_.causal ? std::min(s_.columns, i0 + rows) : s_.columns;
    const int64_t columns = std::min(s_.block_columns, end - j0);
    if (columns <= 0) return;
    const Matrix<T> scores{scores_, columns}, ds{ds_, columns};
    const Matrix<T> q = q_.from_row(i0), g = g_.from_row(i0), k = k_.from_row(j0);
    const AttentionRows<T>& ops = attention_rows<T>();
    times_transposed(rows, columns, s_.width, scale_, q, k, scores);
    times_transposed(rows, columns, s_.value_width, T(1), g, v_.from_row(j0), ds);
    ops.dot(rows, s_.value_width, g, out_.from_row(i0), delta_);
    mask_.apply({scores_, rows, columns, columns, i0 + 1 - j0, a_.causal}, i0, j0);
    mask_.draw(i0, j0, rows, columns);
    mask_.drop(ds_, rows, columns, columns);
    ops.differentiate({scores_, rows, columns, columns, i0 + 1 - j0, a_.causal}, ds_, lse_ + i0, delta_);
    mask_.drop(scores_, rows, columns, columns);
    if (into_q) times(rows, s_.width, columns, scale_, ds, k, dq_.from_row(i0), j == 0);
    if (into_kv) {
      transposed_times(columns, s_.value_width, rows, T(1), scores, g, dv_.from_row(j0), false);
      transposed_times(columns, s_.width, rows, scale_, ds, q, dk_.from_row(j0), false);
    }
  }

  /// Sets dk and dv of a column block to zero.
  void clear(int64_t j) {
    const int64_t j0 = j * s_.block_columns, columns = std::min(s_.block_columns, s_.columns - j0);
    for (int64_t r = 0; r < columns; ++r) {
      std::fill_n(dk_.from_row(j0 + r).data, s_.width, T(0));
      std::fill_n(dv_.from_row(j0 + r).data, s_.value_width, T(0));
    }
  }

 private:
  const AttentionBackwardArgs& a_;
  const Sizes& s_;
  T scale_;
  Matrix<T> q_, k_, v_, g_, out_, dq_, dk_, dv_;
  const T* lse_;
  BlockMask<T> mask_;
  T *scores_, *ds_, *delta_;
};

/// A few long sequences are computed in two sweeps, one over column blocks and one over row blocks; of many short
/// sequences each is one task, which computes every block once.
template <class T>
void backward(const AttentionBackwardArgs& a) {
  constexpr int64_t many = 16;
  const Sizes s(a.q, a.k, a.v);
  const int64_t row_blocks = s.row_blocks(), column_blocks = s.column_blocks();
  if (s.batch >= many || row_blocks * column_blocks == 1) {
    parallel_for(0, s.batch, 1, [&](int64_t b, int64_t e) {
      for (int64_t n = b; n < e; ++n) {
        Backward<T> one(a, s, n);
        for (int64_t j = 0; j < column_blocks; ++j) {
          one.clear(j);
          for (int64_t i = 0; i < row_blocks; ++i) one.block(i, j, true, true);
        }
      }
    });
    return;
  }
  parallel_for(0, s.batch * column_blocks, 1, [&](int64_t b, int64_t e) {
    for (int64_t task = b; task < e; ++task) {
      Backward<T> one(a, s, task / column_blocks);
      one.clear(task % column_blocks);
      for (int64_t i = 0; i < row_blocks; ++i) one.block(i, task % column_blocks, false, true);
    }
  });
  parallel_for(0, s.batch * row_blocks, 1, [&](int64_t b, int64_t e) {
    for (int64_t task = b; task < e; ++task) {
      Backward<T> one(a, s, task / row_blocks);
      for (int64_t j = 0; j < column_blocks; ++j) one.block(task % row_blocks, j, true, false);
    }
  });
}

void attention_backward(const AttentionBackwardArgs& a, Stream&) {
  if (a.q.dtype == DType::f64) return backward<double>(a);
  backward<float>(a);
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL_OF(AttentionArgs, attention, cpu::attention, kNot16BitFloats);
LEVIN_KERNEL_OF(AttentionBackwardArgs, attention_backward, cpu::attention_backward, kNot16BitFloats);

}  // namespace levin::kernels
