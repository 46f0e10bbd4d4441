#pragma once
// The mathematics of reductions and scans, for every device. A reduction is a struct that states the accumulator of
// no elements (neutral), the contribution of an element (map) and the combination of two accumulators (combine).

#include "kernels/src/everywhere.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace levin::kernels::reduction {

/// Floating types are accumulated in double, integers and bool in 64 bits that wrap.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

/// Returns x in type To; 16-bit floats, which are classes, are converted through float.
template <class To, class T>
LEVIN_EVERYWHERE inline To widened(T x) {
  if constexpr (std::is_class_v<T>) {
    return static_cast<To>(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

/// An element contributes its value.
struct OfValues {
  template <class Acc, class T>
  LEVIN_EVERYWHERE Acc map(T x) const {
    return widened<Acc>(x);
  }
};

/// Combines accumulators with an operator that has a neutral element; integers wrap.
template <class Operator, int neutral_value>
struct Fold : OfValues {
  template <class Acc>
  LEVIN_EVERYWHERE static constexpr Acc neutral() {
    return Acc(neutral_value);
  }
  template <class Acc>
  LEVIN_EVERYWHERE static Acc combine(Acc a, Acc b) {
    if constexpr (std::is_integral_v<Acc>) {
      return static_cast<Acc>(Operator{}(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
    } else {
      return Operator{}(a, b);
    }
  }
};
struct Sum : Fold<std::plus<>, 0> {};
struct Prod : Fold<std::multiplies<>, 1> {};

/// The sum of |x|^p, where p = 0 counts nonzero elements. P is double, or a constant, for which no case is left to the
/// loop over the elements.
template <class P = double>
struct PowerSum : Sum {
  P p{};
  template <class Acc, class T>
  LEVIN_EVERYWHERE Acc map(T x) const {
    const Acc magnitude = ::fabs(widened<Acc>(x));
    if (p == 2) return magnitude * magnitude;
    if (p == 1) return magnitude;
    if (p == 0) return magnitude != Acc(0) ? Acc(1) : Acc(0);
    return ::pow(magnitude, static_cast<Acc>(p));
  }
};
using CountNonzero = PowerSum<std::integral_constant<int, 0>>;
using SumAbs = PowerSum<std::integral_constant<int, 1>>;
using SumSquare = PowerSum<std::integral_constant<int, 2>>;

/// NaN propagates, as it does in Min.
struct Max : OfValues {
  template <class Acc>
  LEVIN_EVERYWHERE static constexpr Acc neutral() {
    using Limits = std::numeric_limits<Acc>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <class Acc>
  LEVIN_EVERYWHERE static Acc combine(Acc a, Acc b) {
    return a > b || a != a ? a : b;
  }
};

struct Min : OfValues {
  template <class Acc>
  LEVIN_EVERYWHERE static constexpr Acc neutral() {
    using Limits = std::numeric_limits<Acc>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <class Acc>
  LEVIN_EVERYWHERE static Acc combine(Acc a, Acc b) {
    return a < b || a != a ? a : b;
  }
};

/// The largest magnitude; 0 of no elements.
struct MaxAbs : Max {
  template <class Acc>
  LEVIN_EVERYWHERE static constexpr Acc neutral() {
    return Acc(0);
  }
  template <class Acc, class T>
  LEVIN_EVERYWHERE Acc map(T x) const {
    return ::fabs(widened<Acc>(x));
  }
};

struct MinAbs : Min {
  template <class Acc, class T>
  LEVIN_EVERYWHERE Acc map(T x) const {
    return ::fabs(widened<Acc>(x));
  }
};

/// The result is 1 if any element is nonzero (NaN counts as nonzero), else 0.
struct Any {
  template <class Acc>
  LEVIN_EVERYWHERE static constexpr Acc neutral() {
    return Acc(0);
  }
  template <class Acc, class T>
  LEVIN_EVERYWHERE Acc map(T x) const {
    if constexpr (std::is_class_v<T>) {
      return static_cast<float>(x) != 0.0f ? Acc(1) : Acc(0);
    } else {
      return x != T(0) ? Acc(1) : Acc(0);
    }
  }
  template <class Acc>
  LEVIN_EVERYWHERE static Acc combine(Acc a, Acc b) {
    return a | b;
  }
};

struct All : Any {
  template <class Acc>
  LEVIN_EVERYWHERE static constexpr Acc neutral() {
    return Acc(1);
  }
  template <class Acc>
  LEVIN_EVERYWHERE static Acc combine(Acc a, Acc b) {
    return a & b;
  }
};

/// Op's accumulator for elements of type T.
template <class Op, class T>
using AccumulatorOf = std::conditional_t<std::is_base_of_v<Any, Op>, std::int64_t, Accumulator<T>>;

/// Applied to an accumulator before it is rounded to out's type; integers stay as they are.
struct Finish {
  enum class Kind : std::uint8_t { none, divide, square_root, power } kind = Kind::none;
  double value = 1.0;

  static Finish division(double divisor) { return divisor == 1.0 ? Finish{} : Finish{Kind::divide, divisor}; }
  /// The root of the p-norm, whose reduction is a PowerSum, MaxAbs or MinAbs.
  static Finish root(double p) {
    if (p == 2.0) return {Kind::square_root};
    return p == 0.0 || p == 1.0 || std::isinf(p) ? Finish{} : Finish{Kind::power, 1.0 / p};
  }

  LEVIN_EVERYWHERE double operator()(double x) const {
    switch (kind) {
      case Kind::none: return x;
      case Kind::divide: return x / value;
      case Kind::square_root: return ::sqrt(x);
      case Kind::power: return ::pow(x, value);
    }
    return x;
  }
  LEVIN_EVERYWHERE std::int64_t operator()(std::int64_t x) const { return x; }
};

/// The type of cumulative sums and products of T, which wrap for integers.
template <class T>
using Running = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

template <class T>
LEVIN_EVERYWHERE inline bool is_nan(T x) {
  if constexpr (std::is_class_v<T>) {
    return is_nan(static_cast<float>(x));
  } else {
    return x != x;
  }
}

/// True if x replaces the extremum of the elements before it: it is not smaller (larger), or NaN.
template <bool largest, class T>
LEVIN_EVERYWHERE inline bool follows(T x, T best) {
  return (largest ? x >= best : x <= best) || is_nan(x);
}

/// True if x replaces an earlier extremum: it is larger (smaller), or the first NaN.
template <bool largest, class T>
LEVIN_EVERYWHERE inline bool beats(T x, T best) {
  if (largest ? x <= best : x >= best) return false;
  return !is_nan(best);
}

}  // namespace levin::kernels::reduction
