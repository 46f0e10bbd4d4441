// Vectors that read like numbers, so that the formulas of elementwise_rows.h serve Highway and CUDA; compiled once for
// each target.
#include "kernels/cpu/functions-inl.h"
#include "kernels/src/special_functions.h"

#include <numbers>

#if defined(LEVIN_KERNELS_CPU_NUMBER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_NUMBER_INL_H
#undef LEVIN_KERNELS_CPU_NUMBER_INL_H
#else
#define LEVIN_KERNELS_CPU_NUMBER_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

/// A bool for each lane.
template <class D>
struct Condition {
  hn::Mask<D> mask;
  friend HWY_INLINE Condition operator&&(Condition a, Condition b) { return {hn::And(a.mask, b.mask)}; }
  friend HWY_INLINE Condition operator||(Condition a, Condition b) { return {hn::Or(a.mask, b.mask)}; }
  friend HWY_INLINE Condition operator!=(Condition a, Condition b) { return {hn::Xor(a.mask, b.mask)}; }
};

/// A number for each lane; a constant is repeated over all lanes.
template <class D>
struct Number {
  using V = hn::Vec<D>;
  V v;
  HWY_INLINE explicit Number(V lanes) : v(lanes) {}
  HWY_INLINE explicit Number(double value) : v(constant(D(), value)) {}

  friend HWY_INLINE Number operator-(Number a) { return Number(hn::Neg(a.v)); }
  friend HWY_INLINE Number operator+(Number a, Number b) { return Number(hn::Add(a.v, b.v)); }
  friend HWY_INLINE Number operator-(Number a, Number b) { return Number(hn::Sub(a.v, b.v)); }
  friend HWY_INLINE Number operator*(Number a, Number b) { return Number(hn::Mul(a.v, b.v)); }
  friend HWY_INLINE Number operator/(Number a, Number b) { return Number(hn::Div(a.v, b.v)); }
  friend HWY_INLINE Condition<D> operator==(Number a, Number b) { return {hn::Eq(a.v, b.v)}; }
  friend HWY_INLINE Condition<D> operator!=(Number a, Number b) { return {hn::Ne(a.v, b.v)}; }
  friend HWY_INLINE Condition<D> operator<(Number a, Number b) { return {hn::Lt(a.v, b.v)}; }
  friend HWY_INLINE Condition<D> operator<=(Number a, Number b) { return {hn::Le(a.v, b.v)}; }
  friend HWY_INLINE Condition<D> operator>(Number a, Number b) { return {hn::Gt(a.v, b.v)}; }
  friend HWY_INLINE Condition<D> operator>=(Number a, Number b) { return {hn::Ge(a.v, b.v)}; }
};

/// Functions that the formulas use; kernels/cuda/elementwise/math.cuh has the same functions for CUDA.
namespace math {

#define LEVIN_MATH(name, expression)          \
  template <class D>                          \
  HWY_INLINE Number<D> name(Number<D> n) {    \
    [[maybe_unused]] const D d;               \
    const hn::Vec<D> x = n.v;                 \
    return Number<D>(expression);             \
  }
// For f32 a vector function, for f64 a plain one.
#define LEVIN_MATH_OF_F32(name, plain)                                                             \
  template <class D>                                                                               \
  HWY_INLINE Number<D> name(Number<D> x) {                                                         \
    if constexpr (sizeof(hn::TFromD<D>) == 4) return Number<D>(name##_f32(D(), x.v));              \
    else return Number<D>(lanewise(D(), +[](hn::TFromD<D> v) { return plain(v); }, x.v));          \
  }
LEVIN_MATH(neg, hn::Neg(x))
LEVIN_MATH(abs, hn::Abs(x))
LEVIN_MATH(floor, hn::Floor(x))
LEVIN_MATH(ceil, hn::Ceil(x))
LEVIN_MATH(round, hn::Round(x))
LEVIN_MATH(trunc, hn::Trunc(x))
LEVIN_MATH(sqrt, hn::Sqrt(x))
LEVIN_MATH(exp, exp_v(d, x))
LEVIN_MATH(expm1, expm1_v(d, x))
LEVIN_MATH(log, log_v(d, x))
LEVIN_MATH(log2, log_ends(d, x, hn::Log2(d, x)))
LEVIN_MATH(log10, log_ends(d, x, hn::Log10(d, x)))
LEVIN_MATH(log1p, log1p_v(d, x))
LEVIN_MATH(sin, sin_v(d, x))
LEVIN_MATH(cos, cos_v(d, x))
LEVIN_MATH(lgamma, lanewise(d, +[](hn::TFromD<D> v) { return special::log_gamma(v); }, x))
LEVIN_MATH_OF_F32(tan, std::tan)
LEVIN_MATH_OF_F32(asin, std::asin)
LEVIN_MATH_OF_F32(acos, std::acos)
LEVIN_MATH_OF_F32(atan, std::atan)
LEVIN_MATH_OF_F32(sinh, std::sinh)
LEVIN_MATH_OF_F32(cosh, std::cosh)
LEVIN_MATH_OF_F32(asinh, std::asinh)
LEVIN_MATH_OF_F32(acosh, std::acosh)
LEVIN_MATH_OF_F32(atanh, std::atanh)
LEVIN_MATH_OF_F32(erfc, std::erfc)
LEVIN_MATH_OF_F32(exp2, std::exp2)
LEVIN_MATH_OF_F32(erfinv, special::erfinv)
LEVIN_MATH(tanh, tanh_v(d, x))
LEVIN_MATH(quick_tanh, quick_tanh_v(d, x))
LEVIN_MATH(sigmoid, sigmoid_v(d, x))
LEVIN_MATH(erf, erf_v(d, x))
LEVIN_MATH(quick_normal_cdf, quick_normal_cdf_v(d, x))
#undef LEVIN_MATH_OF_F32
#undef LEVIN_MATH

template <class D>
HWY_INLINE Number<D> fmod(Number<D> x, Number<D> y) {
  return Number<D>(fmod_v(D(), x.v, y.v));
}

#define LEVIN_MATH_OF_F32(name)                                                                              \
  template <class D>                                                                                         \
  HWY_INLINE Number<D> name(Number<D> x, Number<D> y) {                                                      \
    using T = hn::TFromD<D>;                                                                                 \
    if constexpr (sizeof(T) == 4) return Number<D>(name##_f32(D(), x.v, y.v));                               \
    else return Number<D>(lanewise(D(), +[](T a, T b) { return std::name(a, b); }, x.v, y.v));               \
  }
LEVIN_MATH_OF_F32(atan2)
LEVIN_MATH_OF_F32(hypot)
#undef LEVIN_MATH_OF_F32

/// Returns x with the sign of y.
template <class D>
HWY_INLINE Number<D> copysign(Number<D> x, Number<D> y) {
  return Number<D>(hn::CopySign(x.v, y.v));
}

template <class D>
HWY_INLINE Condition<D> is_negative(Number<D> x) {
  return {hn::Lt(x.v, hn::Zero(D()))};
}

template <class D>
HWY_INLINE Number<D> where(Condition<D> condition, Number<D> a, Number<D> b) {
  return Number<D>(hn::IfThenElse(condition.mask, a.v, b.v));
}

template <class D>
HWY_INLINE Number<D> keep_nan(Number<D> x, Number<D> y) {
  return Number<D>(cpu::HWY_NAMESPACE::keep_nan(x.v, y.v));
}

template <class D>
HWY_INLINE Number<D> mul(Number<D> a, Number<D> b) {
  return a * b;
}

/// Computes a * b + c, rounded once if the hardware can.
template <class D>
HWY_INLINE Number<D> fma(Number<D> a, Number<D> b, Number<D> c) {
  return Number<D>(hn::MulAdd(a.v, b.v, c.v));
}

// Functions of plain numbers, for the constants of a formula.
HWY_INLINE double sqrt(double x) { return std::sqrt(x); }
HWY_INLINE double pow(double x, double y) { return std::pow(x, y); }
/// Computes x * y with its own rounding, so that it is not fused into a multiply-add.
HWY_INLINE double product(double x, double y) { return x * y; }

/// Returns min(max(x, low), high); NaN stays NaN.
template <class D>
HWY_INLINE Number<D> clamp(Number<D> x, Number<D> low, Number<D> high) {
  const Number<D> y = where(x < low, low, x);
  return where(y > high, high, y);
}

}  // namespace math

#define LEVIN_FORMULA_FUNCTION HWY_INLINE
#include "kernels/src/formulas.inc"
#undef LEVIN_FORMULA_FUNCTION

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
