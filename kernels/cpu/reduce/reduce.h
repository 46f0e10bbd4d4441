#pragma once
// How all reductions run: one driver, which knows shapes, strides, chunks and threads, calls the strips of a reducer,
// which knows one operation on one type.

#include "kernels/src/reductions.h"

#include <levin/core/tensor_view.h>

namespace levin::kernels::cpu {

/// `rows` lines of `n` elements; strides are in elements.
struct Strip {
  const void* x;
  int64_t rows, row_stride, n, stride;
  double p;  ///< a parameter of the operation
};

/// One operation on one element type. Acc is double for floating types, int64 for the others.
template <class Acc>
struct Reducer {
  void (*rows)(const Strip&, Acc* acc);     ///< reduces the whole strip into acc[0]
  void (*columns)(const Strip&, Acc* acc);  ///< reduces over the rows, into acc[n]
  Acc (*combine)(Acc, Acc);
  Acc neutral;
};

using reduction::Finish;

/// Computes out = reduction of x over the axes along which out has size 1. `p` is passed to every strip.
void reduce(const TensorView& out, const TensorView& x, const Reducer<double>& r, Finish finish, double p = 0.0);
void reduce(const TensorView& out, const TensorView& x, const Reducer<int64_t>& r, Finish finish, double p = 0.0);

/// SIMD strips of the operations for which speed matters.
struct FloatReducers {
  Reducer<double> sum, sum_abs, sum_square, max, min, max_abs;

  /// Returns Op's strips; null if it has none.
  template <class Op>
  const Reducer<double>* of() const {
    if constexpr (std::is_same_v<Op, reduction::Sum>) return &sum;
    if constexpr (std::is_same_v<Op, reduction::SumAbs>) return &sum_abs;
    if constexpr (std::is_same_v<Op, reduction::SumSquare>) return &sum_square;
    if constexpr (std::is_same_v<Op, reduction::Max>) return &max;
    if constexpr (std::is_same_v<Op, reduction::Min>) return &min;
    if constexpr (std::is_same_v<Op, reduction::MaxAbs>) return &max_abs;
    return nullptr;
  }
};
const FloatReducers& float_reducers(float);
const FloatReducers& float_reducers(double);

/// Returns the operation with parameter p, if it has one that is no constant.
template <class Op>
Op with_parameter([[maybe_unused]] double p) {
  Op op;
  if constexpr (requires { op.p = p; }) op.p = p;
  return op;
}

template <class Op, class T, class Acc>
void strip_rows(const Strip& s, Acc* acc) {
  const Op op = with_parameter<Op>(s.p);
  const T* row = static_cast<const T*>(s.x);
  Acc total = *acc;
  for (int64_t r = 0; r < s.rows; ++r, row += s.row_stride)
    for (int64_t i = 0; i < s.n; ++i) total = Op::combine(total, op.template map<Acc>(row[i * s.stride]));
  *acc = total;
}

template <class Op, class T, class Acc>
void strip_columns(const Strip& s, Acc* acc) {
  const Op op = with_parameter<Op>(s.p);
  const T* row = static_cast<const T*>(s.x);
  for (int64_t r = 0; r < s.rows; ++r, row += s.row_stride)
    for (int64_t i = 0; i < s.n; ++i) acc[i] = Op::combine(acc[i], op.template map<Acc>(row[i * s.stride]));
}

/// The plain loops of an operation.
template <class Op, class T, class Acc>
inline constexpr Reducer<Acc> kPlainReducer{strip_rows<Op, T, Acc>, strip_columns<Op, T, Acc>,
                                            Op::template combine<Acc>, Op::template neutral<Acc>()};

}  // namespace levin::kernels::cpu
