// Vector functions that few kernels need, for f32: trigonometric and hyperbolic functions, their inverses, and
// remainders; compiled once for each target. Polynomials are minimax fits with relative errors of 3e-8 or less unless
// stated, and the results are within 4 units in the last place.
#include "kernels/cpu/math-inl.h"

#include <numbers>

#if defined(LEVIN_KERNELS_CPU_FUNCTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_FUNCTIONS_INL_H
#undef LEVIN_KERNELS_CPU_FUNCTIONS_INL_H
#else
#define LEVIN_KERNELS_CPU_FUNCTIONS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

// Whether a multiply-add rounds once.
#if HWY_NATIVE_FMA
inline constexpr bool kFused = true;
#else
inline constexpr bool kFused = false;
#endif

inline constexpr double kQuietNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();
inline constexpr double kHalfPi = std::numbers::pi / 2;

template <class D, class V>
HWY_INLINE V exp2_f32(D d, V x) {
  const V t = bounded(d, x, -160.0, 130.0), n = hn::Round(t);
  const V q = exp_minus_one_near_zero(d, hn::Mul(hn::Sub(t, n), constant(d, std::numbers::ln2)));
  return times_power(d, hn::Add(q, constant(d, 1.0)), n);
}

/// Computes exp(x) / 2 for x >= 0, which is finite wherever sinh and cosh are.
template <class D, class V>
HWY_INLINE V half_exp(D d, V x) {
  const ExpParts<V> e = exp_parts(d, bounded(d, x, 0.0, 104.0));
  return times_power(d, hn::Add(e.q, constant(d, 1.0)), hn::Sub(e.n, constant(d, 1.0)));
}

/// a + a^3 P(a^2) below 1, else (e - 1 / e) / 2 with e = exp(a).
template <class D, class V>
HWY_INLINE V sinh_f32(D d, V x) {
  const V a = hn::Abs(x), s = hn::Mul(a, a), e = half_exp(d, a);
  const V p = polynomial(d, s, 2.8174395083624404e-06, 0.0001983606634894386, 0.008333350531756878,
                         0.1666666716337204);
  const V small = hn::MulAdd(hn::Mul(a, s), p, a), large = hn::Sub(e, hn::Div(constant(d, 0.25), e));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, constant(d, 1.0)), small, large), x);
}

template <class D, class V>
HWY_INLINE V cosh_f32(D d, V x) {
  const V e = half_exp(d, hn::Abs(x));
  return hn::Add(e, hn::Div(constant(d, 0.25), e));
}

/// log(1 + a + a^2 / (1 + sqrt(1 + a^2))), and log(1 + a) + log(2) where a^2 would overflow.
template <class D, class V>
HWY_INLINE V asinh_f32(D d, V x) {
  const V one = constant(d, 1.0), a = hn::Abs(x), s = hn::Mul(a, a);
  const auto large = hn::Gt(a, constant(d, 1e18));
  const V above = hn::Add(a, hn::Div(s, hn::Add(one, hn::Sqrt(hn::Add(one, s)))));
  const V y = log1p_v(d, hn::IfThenElse(large, a, above));
  return hn::CopySign(hn::Add(y, hn::IfThenElseZero(large, constant(d, std::numbers::ln2))), x);
}

/// log(1 + t + sqrt(t (t + 2))) with t = x - 1, and log(x) + log(2) where t^2 would overflow.
template <class D, class V>
HWY_INLINE V acosh_f32(D d, V x) {
  const V one = constant(d, 1.0), t = hn::Sub(x, one);
  const auto large = hn::Gt(x, constant(d, 1e18));
  const V above = hn::Add(t, hn::Sqrt(hn::Mul(t, hn::Add(t, constant(d, 2.0)))));
  const V y = hn::Add(log1p_v(d, hn::IfThenElse(large, x, above)),
                      hn::IfThenElseZero(large, constant(d, std::numbers::ln2)));
  return hn::IfThenElse(hn::Lt(x, one), constant(d, kQuietNan), y);
}

/// log(1 + 2 a / (1 - a)) / 2.
template <class D, class V>
HWY_INLINE V atanh_f32(D d, V x) {
  const V a = hn::Abs(x), ratio = hn::Div(hn::Add(a, a), hn::Sub(constant(d, 1.0), a));
  return hn::CopySign(hn::Mul(log1p_v(d, ratio), constant(d, 0.5)), x);
}

/// asin(a) for a <= 0.5 with s = a^2, as a + a s P(s).
template <class D, class V>
HWY_INLINE V asin_small(D d, V a, V s) {
  const V p = polynomial(d, s, 0.04221857339143753, 0.024147596210241318, 0.04547709971666336, 0.07495241612195969,
                         0.16666753590106964);
  return hn::MulAdd(hn::Mul(a, s), p, a);
}

/// beyond 1/2 by asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)).
template <class D, class V>
HWY_INLINE V asin_f32(D d, V x) {
  const V a = hn::Abs(x), half = constant(d, 0.5);
  const auto large = hn::Gt(a, half);
  const V s = hn::IfThenElse(large, hn::NegMulAdd(half, a, half), hn::Mul(a, a));
  const V y = asin_small(d, hn::IfThenElse(large, hn::Sqrt(s), a), s);
  return hn::CopySign(hn::IfThenElse(large, hn::NegMulAdd(constant(d, 2.0), y, constant(d, kHalfPi)), y), x);
}

template <class D, class V>
HWY_INLINE V acos_f32(D d, V x) {
  const V a = hn::Abs(x), half = constant(d, 0.5);
  const auto large = hn::Gt(a, half), negative = hn::Lt(x, hn::Zero(d));
  const V s = hn::IfThenElse(large, hn::NegMulAdd(half, a, half), hn::Mul(a, a));
  const V y = asin_small(d, hn::IfThenElse(large, hn::Sqrt(s), a), s), twice = hn::Add(y, y);
  const V far = hn::IfThenElse(negative, hn::Sub(constant(d, 2 * kHalfPi), twice), twice);
  return hn::IfThenElse(large, far, hn::Sub(constant(d, kHalfPi), hn::CopySign(y, x)));
}

/// atan(a) for 0 <= a <= 1.
template <class D, class V>
HWY_INLINE V atan_small(D d, V a) {
  const V s = hn::Mul(a, a);
  const V p = polynomial(d, s, 0.002974589355289936, -0.016581179574131966, 0.04355353116989136, -0.07580577582120895,
                         0.10678940266370773, -0.14214208722114563, 0.19994136691093445, -0.3333316743373871);
  return hn::MulAdd(hn::Mul(a, s), p, a);
}

template <class D, class V>
HWY_INLINE V atan_f32(D d, V x) {
  const V one = constant(d, 1.0), a = hn::Abs(x);
  const auto large = hn::Gt(a, one);
  const V y = atan_small(d, hn::IfThenElse(large, hn::Div(one, a), a));
  return hn::CopySign(hn::IfThenElse(large, hn::Sub(constant(d, kHalfPi), y), y), x);
}

/// The angle of the point (x, y): of the quotient that is at most 1, then by octant.
template <class D, class V>
HWY_INLINE V atan2_f32(D d, V y, V x) {
  const V one = constant(d, 1.0), zero = hn::Zero(d), ax = hn::Abs(x), ay = hn::Abs(y);
  const auto steep = hn::Gt(ay, ax);
  const V high = hn::IfThenElse(steep, ay, ax), low = hn::IfThenElse(steep, ax, ay);
  const V infinity = constant(d, kInfinite);
  V ratio = hn::Div(low, high);
  ratio = hn::IfThenElse(hn::Eq(high, zero), zero, hn::IfThenElse(hn::Eq(low, infinity), one, ratio));
  V angle = atan_small(d, ratio);
  angle = hn::IfThenElse(steep, hn::Sub(constant(d, kHalfPi), angle), angle);
  const auto left = hn::Lt(hn::CopySign(one, x), zero);
  angle = hn::IfThenElse(left, hn::Sub(constant(d, 2 * kHalfPi), angle), angle);
  return keep_nan(x, keep_nan(y, hn::CopySign(angle, y)));
}

/// larger * sqrt(1 + (smaller / larger)^2).
template <class D, class V>
HWY_INLINE V hypot_f32(D d, V x, V y) {
  const V one = constant(d, 1.0), zero = hn::Zero(d), infinity = constant(d, kInfinite);
  const V ax = hn::Abs(x), ay = hn::Abs(y);
  const auto first = hn::Gt(ax, ay);
  const V high = hn::IfThenElse(first, ax, ay), low = hn::IfThenElse(first, ay, ax);
  const V ratio = hn::IfThenElse(hn::Eq(high, zero), zero, hn::Div(low, high));
  const V length = keep_nan(x, keep_nan(y, hn::Mul(high, hn::Sqrt(hn::MulAdd(ratio, ratio, one)))));
  return hn::IfThenElse(hn::Or(hn::Eq(ax, infinity), hn::Eq(ay, infinity)), infinity, length);
}

/// With multiply-adds that round once and |x| below 30000: r = x - n pi / 2 in three exact steps, then r + r^3
/// P(r^2), or its negative reciprocal for an odd n.
template <class D, class V>
HWY_INLINE V tan_f32(D d, V x) {
  if constexpr (kFused) {
    if (hn::AllTrue(d, hn::Lt(hn::Abs(x), constant(d, 30000.0)))) {
      const hn::RebindToSigned<D> di;
      const V n = hn::Round(hn::Mul(x, constant(d, 1 / kHalfPi)));
      V r = hn::NegMulAdd(n, constant(d, 1.5707963705062866), x);
      r = hn::NegMulAdd(n, constant(d, -4.371138828673793e-08), r);
      r = hn::NegMulAdd(n, constant(d, -1.7151245100058819e-15), r);
      const V s = hn::Mul(r, r);
      const V p = polynomial(d, s, 0.00940583273768425, 0.0030859708786010742, 0.024450931698083878,
                             0.05340556427836418, 0.1333886682987213, 0.33333155512809753);
      const V t = hn::MulAdd(hn::Mul(r, s), p, r);
      const auto odd = hn::MaskFromVec(hn::BitCast(d, hn::Neg(hn::And(hn::ConvertTo(di, n), hn::Set(di, 1)))));
      return keep_nan_and_zero(d, x, hn::IfThenElse(odd, hn::Div(constant(d, -1.0), t), t));
    }
  }
  return lanewise(d, +[](hn::TFromD<D> v) { return std::tan(v); }, x);
}

/// exp(-a^2) / (1 + 2 a) times a polynomial in (a - 2) / (a + 2), the form of Shepherd and Laframboise (1981); a^2 is
/// kept in two parts.
template <class D, class V>
HWY_INLINE V erfc_f32(D d, V x) {
  const V one = constant(d, 1.0), two = constant(d, 2.0);
  const V a = hn::Min(hn::Abs(x), constant(d, 10.5));  // erfc is 0 there, and 2 at -10.5
  const V q = hn::Div(hn::Sub(a, two), hn::Add(a, two));
  const V p = polynomial(d, q, -0.00040057682781480253, -0.001229927409440279, 0.0013135228073224425,
                         0.008631681092083454, -0.00805987510830164, -0.0542043000459671, 0.16405534744262695,
                         -0.16603142023086548, -0.0927639827132225, 1.2769783735275269);
  const V square = hn::Mul(a, a);
  V rest = hn::Zero(d);
  if constexpr (kFused) {
    rest = hn::MulSub(a, a, square);
  } else {  // Split a into two halves whose products are exact.
    const V scaled = hn::Mul(a, constant(d, 4097.0)), high = hn::Sub(scaled, hn::Sub(scaled, a));
    const V low = hn::Sub(a, high);
    rest = hn::Add(hn::Add(hn::Sub(hn::Mul(high, high), square), hn::Mul(hn::Mul(two, high), low)), hn::Mul(low, low));
  }
  const ExpParts<V> e = exp_parts(d, hn::Neg(square));
  const V power = hn::Add(e.q, one), ratio = hn::Div(p, hn::MulAdd(two, a, one));
  const V y = times_power(d, hn::Mul(hn::NegMulAdd(power, rest, power), ratio), e.n);
  return keep_nan(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(two, y), y));
}

/// x P(w) with w = -log(1 - x^2), or x Q(sqrt(w)) where w is 5 or more (the form of Giles 2012); the fits have
/// relative errors of 1.1e-7.
template <class D, class V>
HWY_INLINE V erfinv_f32(D d, V x) {
  const V one = constant(d, 1.0), a = hn::Abs(x);
  const V w = hn::Neg(hn::Log(d, hn::Mul(hn::Sub(one, a), hn::Add(one, a))));
  const V p = polynomial(d, hn::Sub(w, constant(d, 2.5)), 2.8536220497699105e-08, 3.4372661161796714e-07,
                         -3.5288803701405413e-06, -4.3967802412225865e-06, 0.00021860229026060551,
                         -0.0012537074508145452, -0.004177707713097334, 0.24664072692394257, 1.5014094114303589);
  const V q = polynomial(d, hn::Sub(hn::Sqrt(w), constant(d, 3.2)), -0.00015035891556181014, -0.00016461835184600204,
                         0.0012169250985607505, -0.0021185926161706448, 0.002893807366490364, -0.004264343995600939,
                         0.005981390364468098, 1.0046905279159546, 3.0336363315582275);
  const V y = hn::Mul(x, hn::IfThenElse(hn::Lt(w, constant(d, 5.0)), p, q));
  const V end = hn::IfThenElse(hn::Eq(a, one), hn::CopySign(constant(d, kInfinite), x), constant(d, kQuietNan));
  return hn::IfThenElse(hn::Lt(a, one), y, end);
}

/// The exact remainder of x / y with the sign of x, f32 and f64. With multiply-adds that round once and quotients below
/// 2^23 (2^52) |x| - q |y| is exact, and q too large by one at most.
template <class D, class V>
HWY_INLINE V fmod_v(D d, V x, V y) {
  using T = hn::TFromD<D>;
  if constexpr (kFused) {
    const V a = hn::Abs(x), b = hn::Abs(y), infinity = constant(d, kInfinite);
    const V ratio = hn::Div(a, b), q = hn::Trunc(ratio);
    const auto exact = hn::Lt(ratio, constant(d, sizeof(T) == 4 ? 0x1p23 : 0x1p52));
    if (hn::AllTrue(d, hn::And(exact, hn::Lt(b, infinity)))) {
      V rest = hn::NegMulAdd(q, b, a);
      rest = hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, b), rest);
      return hn::CopySign(rest, x);
    }
  }
  return lanewise(d, +[](T a, T b) { return std::fmod(a, b); }, x, y);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
