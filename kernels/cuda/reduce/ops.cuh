#pragma once
// The operations of reductions: the contribution of an element (map), the combination of two accumulators (combine),
// and the result of an empty line (neutral).

#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/warp.h"

#include <limits>

namespace levin::kernels::cuda {

template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<ComputeType<T>>;

/// Floating types accumulate in double, the others in 64 bits that wrap.
template <class T>
using Accumulator = std::conditional_t<kIsFloating<T>, double, std::int64_t>;

/// Sums and products: F of two values, starting from the neutral element. Integers wrap.
template <class F, int kNeutral>
struct FoldOf {
  template <class Acc>
  static constexpr Acc neutral() {
    return Acc(kNeutral);
  }
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    return convert<Acc>(x);
  }
  template <class Acc>
  __device__ Acc combine(Acc a, Acc b) const {
    if constexpr (std::is_same_v<Acc, double>) {
      return F{}(a, b);
    } else {
      return static_cast<Acc>(F{}(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
    }
  }
};

struct Times {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a * b;
  }
};

using SumOf = FoldOf<Plus, 0>;
using ProductOf = FoldOf<Times, 1>;

/// NaN wins, also in SmallestOf.
struct LargestOf {
  template <class Acc>
  static constexpr Acc neutral() {
    if constexpr (std::is_same_v<Acc, double>) {
      return -std::numeric_limits<double>::infinity();
    } else {
      return std::numeric_limits<Acc>::lowest();
    }
  }
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    return convert<Acc>(x);
  }
  template <class Acc>
  __device__ Acc combine(Acc a, Acc b) const {
    return a > b || a != a ? a : b;
  }
};

struct SmallestOf {
  template <class Acc>
  static constexpr Acc neutral() {
    if constexpr (std::is_same_v<Acc, double>) {
      return std::numeric_limits<double>::infinity();
    } else {
      return std::numeric_limits<Acc>::max();
    }
  }
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    return convert<Acc>(x);
  }
  template <class Acc>
  __device__ Acc combine(Acc a, Acc b) const {
    return a < b || a != a ? a : b;
  }
};

struct LargestMagnitude : LargestOf {
  template <class Acc>
  static constexpr Acc neutral() {
    return Acc(0);
  }
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    return fabs(convert<Acc>(x));
  }
};

struct SmallestMagnitude : SmallestOf {
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    return fabs(convert<Acc>(x));
  }
};

/// Sum of |x|^p; p = 0 counts nonzero elements.
struct PowerSum : SumOf {
  double p;
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    const Acc magnitude = fabs(convert<Acc>(x));
    if (p == 2.0) return magnitude * magnitude;
    if (p == 1.0) return magnitude;
    if (p == 0.0) return magnitude != Acc(0) ? Acc(1) : Acc(0);
    return pow(magnitude, static_cast<Acc>(p));
  }
};

/// Accumulates 0 or 1; NaN counts as nonzero.
struct AnyOf {
  template <class Acc>
  static constexpr Acc neutral() {
    return Acc(0);
  }
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    return convert<ComputeType<T>>(x) != ComputeType<T>(0) ? Acc(1) : Acc(0);
  }
  template <class Acc>
  __device__ Acc combine(Acc a, Acc b) const {
    return a > b ? a : b;
  }
};

struct AllOf : AnyOf {
  template <class Acc>
  static constexpr Acc neutral() {
    return Acc(1);
  }
  template <class Acc>
  __device__ Acc combine(Acc a, Acc b) const {
    return a < b ? a : b;
  }
};

/// Op's accumulator type for elements of type T.
template <class Op, class T>
using AccumulatorOf = std::conditional_t<std::is_base_of_v<AnyOf, Op>, std::int64_t, Accumulator<T>>;

/// The same operation on accumulators, for the pieces of a line that was cut.
template <class Op>
struct OfPieces : Op {
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    return x;
  }
};

/// combine() as a function object.
template <class Op>
struct Combine {
  Op op;
  template <class Acc>
  __device__ Acc operator()(Acc a, Acc b) const {
    return op.combine(a, b);
  }
};

}  // namespace levin::kernels::cuda
