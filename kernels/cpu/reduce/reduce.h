#pragma once
// How all reductions run: one driver, which knows shapes, strides, chunks and threads, calls the strips of a reducer,
// which knows one operation on one type.

#include <levin/core/tensor_view.h>

#include <cmath>
#include <limits>

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

/// Applied to an accumulator before it is rounded to out's type.
struct Finish {
  enum class Kind : std::uint8_t { none, divide, square_root, power } kind = Kind::none;
  double value = 1.0;
};

/// Computes out = reduction of x over the axes along which out has size 1. `p` is passed to every strip.
void reduce(const TensorView& out, const TensorView& x, const Reducer<double>& r, Finish finish, double p = 0.0);
void reduce(const TensorView& out, const TensorView& x, const Reducer<int64_t>& r, Finish finish, double p = 0.0);

/// SIMD strips of the operations for which speed matters.
struct FloatReducers {
  Reducer<double> sum, sum_abs, sum_square, max, min, max_abs;
};
const FloatReducers& float_reducers(float);
const FloatReducers& float_reducers(double);

// Operations, one element at a time. T is the type of x.
struct Sum {
  template <class Acc> static constexpr Acc neutral = Acc(0);
  template <class Acc, class T> static Acc map(T x, double) { return static_cast<Acc>(x); }
  template <class Acc> static Acc combine(Acc a, Acc b) {
    if constexpr (std::is_same_v<Acc, double>) {
      return a + b;
    } else {  // wraps
      return static_cast<Acc>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    }
  }
};
struct SumAbs : Sum {
  template <class Acc, class T> static Acc map(T x, double) { return std::abs(static_cast<Acc>(x)); }
};
struct SumSquare : Sum {
  template <class Acc, class T> static Acc map(T x, double) { return static_cast<Acc>(x) * static_cast<Acc>(x); }
};
struct SumPower : Sum {
  template <class Acc, class T> static Acc map(T x, double p) { return std::pow(std::abs(static_cast<Acc>(x)), p); }
};
struct CountNonzero : Sum {
  template <class Acc, class T> static Acc map(T x, double) { return static_cast<Acc>(static_cast<Acc>(x) != 0); }
};
struct Prod {
  template <class Acc> static constexpr Acc neutral = Acc(1);
  template <class Acc, class T> static Acc map(T x, double) { return static_cast<Acc>(x); }
  template <class Acc> static Acc combine(Acc a, Acc b) {
    if constexpr (std::is_same_v<Acc, double>) {
      return a * b;
    } else {
      return static_cast<Acc>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
  }
};
struct Max {
  template <class Acc>
  static constexpr Acc neutral = std::is_same_v<Acc, double>
                                     ? static_cast<Acc>(-std::numeric_limits<double>::infinity())
                                     : std::numeric_limits<Acc>::lowest();
  template <class Acc, class T> static Acc map(T x, double) { return static_cast<Acc>(x); }
  template <class Acc> static Acc combine(Acc a, Acc b) { return a > b || a != a ? a : b; }
};
struct MaxAbs : Max {
  template <class Acc> static constexpr Acc neutral = Acc(0);
  template <class Acc, class T> static Acc map(T x, double) { return std::abs(static_cast<Acc>(x)); }
};
struct Min {
  template <class Acc>
  static constexpr Acc neutral = std::is_same_v<Acc, double> ? static_cast<Acc>(std::numeric_limits<double>::infinity())
                                                             : std::numeric_limits<Acc>::max();
  template <class Acc, class T> static Acc map(T x, double) { return static_cast<Acc>(x); }
  template <class Acc> static Acc combine(Acc a, Acc b) { return a < b || a != a ? a : b; }
};
struct MinAbs : Min {
  template <class Acc, class T> static Acc map(T x, double) { return std::abs(static_cast<Acc>(x)); }
};
struct Any {
  template <class Acc> static constexpr Acc neutral = Acc(0);
  template <class Acc, class T> static Acc map(T x, double) { return x != T(0) ? Acc(1) : Acc(0); }
  template <class Acc> static Acc combine(Acc a, Acc b) { return a | b; }
};
struct All : Any {
  template <class Acc> static constexpr Acc neutral = Acc(1);
  template <class Acc> static Acc combine(Acc a, Acc b) { return a & b; }
};

template <class Op, class T, class Acc>
void strip_rows(const Strip& s, Acc* acc) {
  const T* row = static_cast<const T*>(s.x);
  Acc total = *acc;
  for (int64_t r = 0; r < s.rows; ++r, row += s.row_stride)
    for (int64_t i = 0; i < s.n; ++i)
      total = Op::template combine<Acc>(total, Op::template map<Acc, T>(row[i * s.stride], s.p));
  *acc = total;
}

template <class Op, class T, class Acc>
void strip_columns(const Strip& s, Acc* acc) {
  const T* row = static_cast<const T*>(s.x);
  for (int64_t r = 0; r < s.rows; ++r, row += s.row_stride)
    for (int64_t i = 0; i < s.n; ++i)
      acc[i] = Op::template combine<Acc>(acc[i], Op::template map<Acc, T>(row[i * s.stride], s.p));
}

/// The plain loops of an operation.
template <class Op, class T, class Acc>
inline constexpr Reducer<Acc> kPlainReducer{strip_rows<Op, T, Acc>, strip_columns<Op, T, Acc>,
                                            Op::template combine<Acc>, Op::template neutral<Acc>};

}  // namespace levin::kernels::cpu
