// a + b, a * b and their like: bound by memory.

#include "kernels/cuda/elementwise/integer.cuh"
#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

/// Or, for bool.
struct Add {
  template <class C>
  static __device__ C call(C a, C b, const Parameters<C>& p) {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(bits_of(a) + bits_of(p.p0) * bits_of(b));
    } else {
      return math::fma(p.p0, b, a);
    }
  }
};
/// And, for bool.
struct Mul {
  template <class C>
  static __device__ C call(C a, C b, const Parameters<C>&) {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(bits_of(a) * bits_of(b));
    } else {
      return a * b;
    }
  }
};
/// a + p0 b c
struct Addcmul {
  template <class C>
  static __device__ C call(C a, C b, C c, const Parameters<C>& p) {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(bits_of(a) + bits_of(p.p0) * bits_of(b) * bits_of(c));
    } else {
      return math::fma(p.p0 * b, c, a);
    }
  }
};
struct Addcdiv {
  template <class C>
  static __device__ C call(C a, C b, C c, const Parameters<C>& p) {
    return a + p.p0 * b / c;
  }
};
/// From the nearer end, so that both are reached exactly.
struct Lerp {
  template <class C>
  static __device__ C call(C a, C b, C w, const Parameters<C>&) {
    const C difference = b - a;
    return math::fabs(w) < C(0.5) ? math::fma(w, difference, a) : math::fma(w - C(1), difference, b);
  }
};
LEVIN_FORMULA_2(Div, a / b)
LEVIN_FORMULA_2(Maximum, a != a || a > b ? a : b)  // NaN in either gives NaN
LEVIN_FORMULA_2(Minimum, a != a || a < b ? a : b)

}  // namespace elementwise

LEVIN_BINARY(add, Add, all)
LEVIN_BINARY(mul, Mul, all)
LEVIN_BINARY(div, Div, floating)
LEVIN_BINARY(maximum, Maximum, all)
LEVIN_BINARY(minimum, Minimum, all)
LEVIN_TERNARY(lerp, Lerp, floating)
LEVIN_TERNARY(addcmul, Addcmul, numeric)
LEVIN_TERNARY(addcdiv, Addcdiv, floating)

}  // namespace levin::kernels::cuda
