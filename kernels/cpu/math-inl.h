// Vector functions that are correct at zero, infinity and NaN; compiled once for each target.
#include "kernels/cpu/simd-inl.h"

#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <limits>
#include <numbers>

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

/// Returns x within [low, high]; NaN stays NaN.
template <class D, class V>
HWY_INLINE V bounded(D d, V x, double low, double high) {
  const V y = hn::Min(constant(d, high), hn::Max(constant(d, low), x));
#if HWY_ARCH_X86  // whose instructions return the second operand if one is NaN
  return y;
#else
  return keep_nan(x, y);
#endif
}

/// Returns max(x, low); NaN stays NaN.
template <class D, class V>
HWY_INLINE V at_least(D d, V x, double low) {
  const V y = hn::Max(constant(d, low), x);
#if HWY_ARCH_X86
  return y;
#else
  return keep_nan(x, y);
#endif
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
template <class D, class V, class... C>
HWY_INLINE V polynomial(D d, V x, double highest, C... rest) {
  return polynomial(d, x, constant(d, highest), rest...);
}

// f32 exponentials: exp(x) = 2^n (1 + q) with a whole n and q = exp(r) - 1 for r = x - n log(2), |r| <= log(2) / 2, as
// r + r^2 P(r); P is a minimax fit with a relative error of 2e-8.

template <class V>
struct ExpParts {
  V n, q;
};

/// Evaluates the polynomial that approximates (exp(r) - 1 - r) / r^2 near 0, or exp(r) if `last` is 1, 1: the
/// coefficients of the powers 1 and 0.
template <class D, class V, class... C>
HWY_INLINE V exp_polynomial(D d, V r, C... last) {
  return polynomial(d, r, 0.001394655555486679, 0.008366644382476807, 0.04166628047823906, 0.16666541993618011, 0.5,
                    last...);
}

template <class D, class V>
HWY_INLINE V exp_minus_one_near_zero(D d, V r) {
  return hn::MulAdd(hn::Mul(r, r), exp_polynomial(d, r), r);
}

/// Returns x - n log(2). The first part of log(2) is short, so that its product with n is exact.
template <class D, class V>
HWY_INLINE V exp_rest(D d, V x, V n) {
  return hn::NegMulAdd(n, constant(d, 1.42860682030941723212e-6),
                       hn::NegMulAdd(n, constant(d, 0.693145751953125), x));
}

template <class D, class V>
HWY_INLINE ExpParts<V> exp_parts(D d, V x) {
  const V n = hn::Round(hn::Mul(x, constant(d, 1.4426950408889634)));
  return {n, exp_minus_one_near_zero(d, exp_rest(d, x, n))};
}

/// Computes y * 2^n for |n| < 250; rounded once where the result is subnormal.
template <class D, class V>
HWY_INLINE V times_power(D d, V y, V n) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(V) == 64) return V{_mm512_scalef_ps(y.raw, n.raw)};
#endif
  const hn::RebindToSigned<D> di;
  const auto whole = hn::ConvertTo(di, n), half = hn::ShiftRight<1>(whole), bias = hn::Set(di, 127);
  const auto power = [&](auto k) HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, bias))); };
  return hn::Mul(hn::Mul(y, power(half)), power(hn::Sub(whole, half)));
}

/// Computes exp(x) for f32, -150 < x < 150 or NaN.
template <class D, class V>
HWY_INLINE V exp_inside(D d, V x) {
  const V n = hn::Round(hn::Mul(x, constant(d, 1.4426950408889634)));
  return times_power(d, exp_polynomial(d, exp_rest(d, x, n), 1.0, 1.0), n);
}

template <class D, class V>
HWY_INLINE V exp_v(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return keep_nan(x, hn::Exp(d, hn::Min(x, constant(d, 1000.0))));
  } else {
    return exp_inside(d, bounded(d, x, -110.0, 104.0));
  }
}

/// Computes exp(x) for x < 104, or NaN.
template <class D, class V>
HWY_INLINE V exp_of_low(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return exp_v(d, x);
  } else {
    return exp_inside(d, at_least(d, x, -110.0));
  }
}

/// f32, for -25 < x < 90 or NaN: 2^n q + (2^n - 1), computed from half the power, since 2^128 is infinite.
template <class D, class V>
HWY_INLINE V exp_minus_one(D d, V x) {
  const ExpParts<V> e = exp_parts(d, x);
  const hn::RebindToSigned<D> di;
  const V half = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, e.n), hn::Set(di, 126))));
  const V y = hn::MulAdd(half, e.q, hn::Sub(half, constant(d, 0.5)));
  return hn::Add(y, y);
}

template <class D, class V>
HWY_INLINE V expm1_v(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return keep_nan_and_zero(d, x, hn::Expm1(d, hn::Min(x, constant(d, 1000.0))));
  } else {
    return hn::CopySign(exp_minus_one(d, bounded(d, x, -25.0, 89.0)), x);
  }
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

/// f32: 1 + x = 2^k (1 + f) with 0.75 <= 1 + f < 1.5 and log(1 + f) = f + f^2 P(f), a minimax fit with a relative
/// error of 2e-8. f64, and where 2^k is too large: Highway's function.
template <class D, class V>
HWY_INLINE V log1p_inside(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    if (hn::AllTrue(d, hn::Lt(x, constant(d, 1e38)))) {
      const hn::RebindToSigned<D> di;
      const V one = constant(d, 1.0);
      const auto above = hn::Sub(hn::BitCast(di, hn::Add(x, one)), hn::BitCast(di, constant(d, 0.75)));
      const auto k = hn::And(above, hn::Set(di, static_cast<int32_t>(0xff800000u)));  // in the place of an exponent
      const V scale = hn::BitCast(d, hn::Sub(hn::BitCast(di, one), k));
      const V f = hn::MulAdd(x, scale, hn::Sub(scale, one));
      const V p = polynomial(d, f, -0.044909652322530746, 0.10448335856199265, -0.1316223293542862, 0.14482061564922333,
                             -0.16647766530513763, 0.19990605115890503, -0.250000536441803, 0.3333345651626587, -0.5);
      const V y = hn::MulAdd(hn::Mul(f, f), p, f);
      return hn::MulAdd(hn::ConvertTo(d, k), constant(d, 0.69314718055994531 / 8388608), y);
    }
  }
  return hn::Log1p(d, x);
}

template <class D, class V>
HWY_INLINE V log1p_v(D d, V x) {
  const V one = constant(d, 1.0), above = hn::Add(x, one);
  // Where 1 + x is 1, the result is x; everything else depends on 1 + x.
  return hn::IfThenElse(hn::Eq(above, one), x, log_ends(d, above, log1p_inside(d, x)));
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

/// f32: t / (t + 2) with t = exp(2 |x|) - 1.
template <class D, class V>
HWY_INLINE V tanh_v(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return keep_nan(x, hn::Tanh(d, x));
  } else {
    const V a = hn::Abs(x), t = exp_minus_one(d, bounded(d, hn::Add(a, a), 0.0, 20.0));
    return hn::CopySignToAbs(hn::Div(t, hn::Add(t, constant(d, 2.0))), x);
  }
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
    const V p = polynomial(d, s, -0.0005919355899095535, 0.004979116376489401, -0.026757024228572845,
                           0.11281552165746689, -0.37612468004226685, 0.12837915122509003);
    const V small = hn::MulAdd(p, x, x);
    const V q = polynomial(d, t, constant(d, 1.2155308468209114e-05), -0.0003320347750559449, 0.0036799139343202114,
                           -0.02384110540151596, 0.10632843524217606, 0.6350960731506348, 0.12866206467151642);
    const V large = hn::Neg(exp_minus_one(d, hn::Neg(hn::MulAdd(q, t, t))));
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

/// Computes the standard normal distribution function as accurately as gelu needs it.
template <class D, class V>
HWY_INLINE V quick_normal_cdf_v(D d, V x) {
  const V half = constant(d, 0.5);
  return hn::MulAdd(half, quick_erf_v(d, hn::Mul(x, constant(d, 0.5 * std::numbers::sqrt2))), half);
}

template <class D, class V>
HWY_INLINE V sigmoid_v(D d, V x) {
  const V one = constant(d, 1.0);
  return hn::Div(one, hn::Add(one, exp_v(d, hn::Neg(x))));
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
