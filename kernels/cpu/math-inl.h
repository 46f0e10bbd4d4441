// Vector functions that are correct at zero, infinity and NaN; compiled once for each target.
#include "kernels/cpu/simd-inl.h"

#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <limits>

#if defined(LEVIN_KERNELS_CPU_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_MATH_INL_H
#undef LEVIN_KERNELS_CPU_MATH_INL_H
#else
#define LEVIN_KERNELS_CPU_MATH_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

/// Returns y, but x itself where x is NaN.
template <class V>
HWY_INLINE V keep_nan(V x, V y) {
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

/// Returns y, but x itself where x is NaN or a zero, whose sign is kept.
template <class D, class V>
HWY_INLINE V keep_nan_and_zero(D d, V x, V y) {
  return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Zero(d)), y, x);
}

/// Applies a function of the standard library to each lane.
template <class D, class V>
HWY_INLINE V lanewise(D d, hn::TFromD<D> (*f)(hn::TFromD<D>), V x) {
  HWY_ALIGN hn::TFromD<D> lanes[kLanes<hn::TFromD<D>>];
  hn::Store(x, d, lanes);
  for (auto& lane : lanes) lane = f(lane);
  return hn::Load(d, lanes);
}

template <class D, class V>
HWY_INLINE V lanewise(D d, hn::TFromD<D> (*f)(hn::TFromD<D>, hn::TFromD<D>), V x, V y) {
  HWY_ALIGN hn::TFromD<D> lanes[kLanes<hn::TFromD<D>>], others[kLanes<hn::TFromD<D>>];
  hn::Store(x, d, lanes);
  hn::Store(y, d, others);
  for (int64_t i = 0; i < kLanes<hn::TFromD<D>>; ++i) lanes[i] = f(lanes[i], others[i]);
  return hn::Load(d, lanes);
}

template <class D, class V>
HWY_INLINE V exp_v(D d, V x) {
  constexpr double top = sizeof(hn::TFromD<D>) == 4 ? 104.0 : 1000.0;
  return keep_nan(x, hn::Exp(d, hn::Min(x, constant(d, top))));
}

template <class D, class V>
HWY_INLINE V expm1_v(D d, V x) {
  constexpr double top = sizeof(hn::TFromD<D>) == 4 ? 104.0 : 1000.0;
  return keep_nan_and_zero(d, x, hn::Expm1(d, hn::Min(x, constant(d, top))));
}

/// Corrects a logarithm `y` of `x` that is right for 0 < x < infinity.
template <class D, class V>
HWY_INLINE V log_ends(D d, V x, V y) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const V zero = hn::Zero(d);
  const auto inside = hn::And(hn::Gt(x, zero), hn::Lt(x, constant(d, infinity)));
  const V negative = hn::IfThenElse(hn::Lt(x, zero), constant(d, std::numeric_limits<double>::quiet_NaN()), x);
  return hn::IfThenElse(inside, y, hn::IfThenElse(hn::Eq(x, zero), constant(d, -infinity), negative));
}

template <class D, class V>
HWY_INLINE V log_v(D d, V x) {
  return log_ends(d, x, hn::Log(d, x));
}

template <class D, class V>
HWY_INLINE V log1p_v(D d, V x) {
  const V one = constant(d, 1.0);
  const V inner = hn::Log1p(d, x);
  // Where 1 + x is 1, the result of Log1p is x; everything else depends on 1 + x.
  return hn::IfThenElse(hn::Eq(hn::Add(x, one), one), x, log_ends(d, hn::Add(x, one), inner));
}

/// Arguments beyond the range of the vector reduction use the standard library.
template <class D, class V>
HWY_INLINE V sin_v(D d, V x) {
  if (hn::AllTrue(d, hn::Lt(hn::Abs(x), constant(d, 30000.0)))) return keep_nan_and_zero(d, x, hn::Sin(d, x));
  return lanewise(d, +[](hn::TFromD<D> v) { return std::sin(v); }, x);
}

template <class D, class V>
HWY_INLINE V cos_v(D d, V x) {
  if (hn::AllTrue(d, hn::Lt(hn::Abs(x), constant(d, 30000.0)))) return hn::Cos(d, x);
  return lanewise(d, +[](hn::TFromD<D> v) { return std::cos(v); }, x);
}

template <class D, class V>
HWY_INLINE V polynomial(D, V, V sum) {
  return sum;
}
/// Evaluates a polynomial by Horner's rule, highest coefficient first.
template <class D, class V, class... C>
HWY_INLINE V polynomial(D d, V x, V sum, double next, C... rest) {
  return polynomial(d, x, hn::MulAdd(sum, x, constant(d, next)), rest...);
}

template <class D, class V>
HWY_INLINE V tanh_v(D d, V x) {
  return keep_nan(x, hn::Tanh(d, x));
}

/// Approximates tanh well enough for gelu, in half the time. f32: x P(x^2) / Q(x^2), a minimax fit up to |x| = 8.9 and
/// 1 beyond; relative error below 4e-7. f64: as tanh_v.
template <class D, class V>
HWY_INLINE V quick_tanh_v(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return tanh_v(d, x);
  } else {
    const V one = constant(d, 1.0), end = constant(d, 8.9);
    const V t = hn::Min(hn::Max(x, hn::Neg(end)), end);
    const V s = hn::Mul(t, t);
    const V p = polynomial(d, s, constant(d, 3.708921017531175e-11), 1.1172325997677035e-07, 4.23684214183595e-05,
                           0.004429610446095467, 0.1410195380449295, 1.0);
    const V q = polynomial(d, s, constant(d, 2.971552337527328e-09), 2.612676780699985e-06, 0.000501539499964565,
                           0.029213903471827507, 0.4743528664112091, 1.0);
    const V y = hn::Div(hn::Mul(t, p), q);
    return hn::IfThenElse(hn::Ge(hn::Abs(x), end), hn::CopySign(one, x), keep_nan(x, y));
  }
}

/// f32: x + x P(x^2) below 15/16 and 1 - exp(-(x + x Q(x))) above, where P and Q are minimax fits; within 2 units in
/// the last place. f64: the function of the standard library.
template <class D, class V>
HWY_INLINE V erf_v(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return lanewise(d, +[](double v) { return std::erf(v); }, x);
  } else {
    const V t = hn::Min(hn::Abs(x), constant(d, 4.0));  // erf is 1 from there on
    const V s = hn::Mul(x, x);
    const V p = polynomial(d, s, constant(d, -0.0005919355899095535), 0.004979116376489401, -0.026757024228572845,
                           0.11281552165746689, -0.37612468004226685, 0.12837915122509003);
    const V small = hn::MulAdd(p, x, x);
    const V q = polynomial(d, t, constant(d, 1.2155308468209114e-05), -0.0003320347750559449, 0.0036799139343202114,
                           -0.02384110540151596, 0.10632843524217606, 0.6350960731506348, 0.12866206467151642);
    const V large = hn::Sub(constant(d, 1.0), hn::Exp(d, hn::Neg(hn::MulAdd(q, t, t))));
    return keep_nan(x, hn::IfThenElse(hn::Lt(t, constant(d, 0.9375)), small, hn::CopySign(large, x)));
  }
}

/// Approximates erf well enough for gelu, in a third of the time. f32: x P(x^2) / Q(x^2) with a minimax fit up to |x| =
/// 3.96 and 1 beyond; absolute error below 3e-7. f64: as erf_v.
template <class D, class V>
HWY_INLINE V quick_erf_v(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return erf_v(d, x);
  } else {
    const V one = constant(d, 1.0), end = constant(d, 3.9375);
    const V t = hn::Min(hn::Max(x, hn::Neg(end)), end);
    const V s = hn::Mul(t, t);
    const V p = polynomial(d, s, constant(d, 2.015926156673231e-06), 0.00028457905864343047, 0.003825062420219183,
                           0.05292592942714691, 0.19200947880744934, 1.1283791065216064);
    const V q = polynomial(d, s, constant(d, 3.77228316210676e-05), 0.0011739146430045366, 0.01508931815624237,
                           0.11474010348320007, 0.5034966468811035, 1.0);
    const V y = hn::Div(hn::Mul(t, p), q);
    return hn::IfThenElse(hn::Ge(hn::Abs(x), end), hn::CopySign(one, x), keep_nan(x, y));
  }
}

template <class D, class V>
HWY_INLINE V sigmoid_v(D d, V x) {
  const V one = constant(d, 1.0);
  return hn::Div(one, hn::Add(one, exp_v(d, hn::Neg(x))));
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
