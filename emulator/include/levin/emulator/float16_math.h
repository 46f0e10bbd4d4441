#pragma once
// Arithmetic, comparisons and elementary functions of __half and __nv_bfloat16, and elementwise of their pairs.
//
// A binary operation is computed in float and rounded once more. Float has at least 2p + 2 bits for both formats (p =
// 11 and 8), so the double rounding of a sum, product, quotient or root equals a single one.

#include <levin/emulator/bfloat16.h>

#include <cmath>

namespace levin::emulator::float16 {

/// Returns a * b + c, rounded once however far apart the terms are. In double the product is exact (22 bits at most);
/// the sum is rounded to odd, which makes the later rounding to 16 bits correct.
inline double fused(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b), addend = static_cast<double>(c);
  const double sum = product + addend;
  const double addend_part = sum - product, product_part = sum - addend_part;
  const double lost = (product - product_part) + (addend - addend_part);
  if (!std::isfinite(sum) || lost == 0) return sum;
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if (std::signbit(lost) != std::signbit(sum)) --bits;  // towards zero
  return std::bit_cast<double>(bits | 1u);
}

/// Clamps to [0, 1]; NaN gives 0.
template <class F>
F saturated(F a) {
  return a > 0 ? (a < 1 ? a : F{1}) : F{0};
}
/// Clamps to at least 0; NaN stays NaN.
template <class F>
F rectified(F a) {
  return a <= 0 ? F{0} : a;
}
/// Returns the maximum; a number wins over NaN, and +0 is larger than -0.
inline float larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  return a > b || (a == b && std::signbit(b)) ? a : b;
}
inline float smaller(float a, float b) { return -larger(-a, -b); }
/// Returns the maximum; NaN wins over a number.
inline float larger_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? a + b : larger(a, b); }
inline float smaller_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? a + b : smaller(a, b); }

}  // namespace levin::emulator::float16

/// Defines name(T, T) and name2(T2, T2) for both types; `value` is the result for floats a and b.
#define LEVIN_EMULATOR_FLOAT16_BINARY(name, name2, value)               \
  LEVIN_EMULATOR_FLOAT16_BINARY_OF(__half, __half2, name, name2, value) \
  LEVIN_EMULATOR_FLOAT16_BINARY_OF(__nv_bfloat16, __nv_bfloat162, name, name2, value)
#define LEVIN_EMULATOR_FLOAT16_BINARY_OF(T, T2, name, name2, value)   \
  inline T name(T x, T y) {                                           \
    using namespace levin::emulator::float16;                         \
    const float a = static_cast<float>(x), b = static_cast<float>(y); \
    return T(value);                                                  \
  }                                                                   \
  inline T2 name2(T2 x, T2 y) { return T2(name(x.x, y.x), name(x.y, y.y)); }

LEVIN_EMULATOR_FLOAT16_BINARY(__hadd, __hadd2, a + b)
LEVIN_EMULATOR_FLOAT16_BINARY(__hsub, __hsub2, a - b)
LEVIN_EMULATOR_FLOAT16_BINARY(__hmul, __hmul2, (a * b))
LEVIN_EMULATOR_FLOAT16_BINARY(__hdiv, __h2div, a / b)
LEVIN_EMULATOR_FLOAT16_BINARY(__hadd_rn, __hadd2_rn, a + b)
LEVIN_EMULATOR_FLOAT16_BINARY(__hsub_rn, __hsub2_rn, a - b)
LEVIN_EMULATOR_FLOAT16_BINARY(__hmul_rn, __hmul2_rn, (a * b))
LEVIN_EMULATOR_FLOAT16_BINARY(__hadd_sat, __hadd2_sat, saturated(a + b))
LEVIN_EMULATOR_FLOAT16_BINARY(__hsub_sat, __hsub2_sat, saturated(a - b))
LEVIN_EMULATOR_FLOAT16_BINARY(__hmul_sat, __hmul2_sat, saturated((a * b)))
LEVIN_EMULATOR_FLOAT16_BINARY(__hmax, __hmax2, larger(a, b))
LEVIN_EMULATOR_FLOAT16_BINARY(__hmin, __hmin2, smaller(a, b))
LEVIN_EMULATOR_FLOAT16_BINARY(__hmax_nan, __hmax2_nan, larger_nan(a, b))
LEVIN_EMULATOR_FLOAT16_BINARY(__hmin_nan, __hmin2_nan, smaller_nan(a, b))
#undef LEVIN_EMULATOR_FLOAT16_BINARY
#undef LEVIN_EMULATOR_FLOAT16_BINARY_OF

/// Defines name(T) and name2(T2); `value` is the result for the float a.
#define LEVIN_EMULATOR_FLOAT16_UNARY(name, name2, value)               \
  LEVIN_EMULATOR_FLOAT16_UNARY_OF(__half, __half2, name, name2, value) \
  LEVIN_EMULATOR_FLOAT16_UNARY_OF(__nv_bfloat16, __nv_bfloat162, name, name2, value)
#define LEVIN_EMULATOR_FLOAT16_UNARY_OF(T, T2, name, name2, value) \
  inline T name(T x) {                                             \
    const float a = static_cast<float>(x);                         \
    return T(value);                                               \
  }                                                                \
  inline T2 name2(T2 x) { return T2(name(x.x), name(x.y)); }

LEVIN_EMULATOR_FLOAT16_UNARY(__hneg, __hneg2, -a)
LEVIN_EMULATOR_FLOAT16_UNARY(__habs, __habs2, std::fabs(a))
LEVIN_EMULATOR_FLOAT16_UNARY(htrunc, h2trunc, std::trunc(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hceil, h2ceil, std::ceil(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hfloor, h2floor, std::floor(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hrint, h2rint, std::nearbyint(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hsqrt, h2sqrt, std::sqrt(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hrsqrt, h2rsqrt, 1.0 / std::sqrt(static_cast<double>(a)))
LEVIN_EMULATOR_FLOAT16_UNARY(hrcp, h2rcp, 1.0f / a)
LEVIN_EMULATOR_FLOAT16_UNARY(hexp, h2exp, std::exp(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hexp2, h2exp2, std::exp2(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hexp10, h2exp10, std::pow(10.0, static_cast<double>(a)))
LEVIN_EMULATOR_FLOAT16_UNARY(hlog, h2log, std::log(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hlog2, h2log2, std::log2(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hlog10, h2log10, std::log10(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hsin, h2sin, std::sin(a))
LEVIN_EMULATOR_FLOAT16_UNARY(hcos, h2cos, std::cos(a))
LEVIN_EMULATOR_FLOAT16_UNARY(htanh, h2tanh, std::tanh(a))
LEVIN_EMULATOR_FLOAT16_UNARY(htanh_approx, h2tanh_approx, std::tanh(a))
#undef LEVIN_EMULATOR_FLOAT16_UNARY
#undef LEVIN_EMULATOR_FLOAT16_UNARY_OF

/// Defines fused multiply-adds and the functions that have a signature of their own.
#define LEVIN_EMULATOR_FLOAT16_OTHERS(T, T2)                                                                        \
  inline T __hfma(T a, T b, T c) {                                                                                  \
    return T(levin::emulator::float16::fused(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))); \
  }                                                                                                                 \
  inline T __hfma_sat(T a, T b, T c) {                                                                              \
    return T(levin::emulator::float16::saturated(static_cast<float>(__hfma(a, b, c))));                             \
  }                                                                                                                 \
  inline T __hfma_relu(T a, T b, T c) {                                                                             \
    return T(levin::emulator::float16::rectified(static_cast<float>(__hfma(a, b, c))));                             \
  }                                                                                                                 \
  inline T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }                  \
  inline T2 __hfma2_sat(T2 a, T2 b, T2 c) { return T2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)); }      \
  inline T2 __hfma2_relu(T2 a, T2 b, T2 c) { return T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); }   \
  inline T2 __hcmadd(T2 a, T2 b, T2 c) {                                                                            \
    return T2(__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));            \
  }                                                                                                                 \
  inline bool __hisnan(T a) { return std::isnan(static_cast<float>(a)); }                                           \
  inline int __hisinf(T a) {                                                                                        \
    return std::isinf(static_cast<float>(a)) ? (std::signbit(static_cast<float>(a)) ? -1 : 1) : 0;                  \
  }                                                                                                                 \
  inline T2 __hisnan2(T2 a) { return T2(T(__hisnan(a.x) ? 1 : 0), T(__hisnan(a.y) ? 1 : 0)); }
LEVIN_EMULATOR_FLOAT16_OTHERS(__half, __half2)
LEVIN_EMULATOR_FLOAT16_OTHERS(__nv_bfloat16, __nv_bfloat162)
#undef LEVIN_EMULATOR_FLOAT16_OTHERS

/// Defines the six forms of a comparison: of values; of pairs as 1 or 0, as a mask, and whether both elements hold.
#define LEVIN_EMULATOR_FLOAT16_COMPARE(op, holds)               \
  LEVIN_EMULATOR_FLOAT16_COMPARE_OF(__half, __half2, op, holds) \
  LEVIN_EMULATOR_FLOAT16_COMPARE_OF(__nv_bfloat16, __nv_bfloat162, op, holds)
#define LEVIN_EMULATOR_FLOAT16_COMPARE_OF(T, T2, op, holds)                                                   \
  inline bool __h##op(T x, T y) {                                                                             \
    const float a = static_cast<float>(x), b = static_cast<float>(y);                                         \
    return holds;                                                                                             \
  }                                                                                                           \
  inline T2 __h##op##2(T2 a, T2 b) { return T2(T(__h##op(a.x, b.x) ? 1 : 0), T(__h##op(a.y, b.y) ? 1 : 0)); } \
  inline bool __hb##op##2(T2 a, T2 b) { return __h##op(a.x, b.x) && __h##op(a.y, b.y); }                      \
  inline unsigned int __h##op##2_mask(T2 a, T2 b) {                                                           \
    return (__h##op(a.x, b.x) ? 0xffffu : 0u) | (__h##op(a.y, b.y) ? 0xffff0000u : 0u);                       \
  }

LEVIN_EMULATOR_FLOAT16_COMPARE(eq, a == b)
LEVIN_EMULATOR_FLOAT16_COMPARE(ne, a<b || a> b)
LEVIN_EMULATOR_FLOAT16_COMPARE(le, a <= b)
LEVIN_EMULATOR_FLOAT16_COMPARE(ge, a >= b)
LEVIN_EMULATOR_FLOAT16_COMPARE(lt, a < b)
LEVIN_EMULATOR_FLOAT16_COMPARE(gt, a > b)
// The unordered comparisons, which hold if an operand is NaN.
LEVIN_EMULATOR_FLOAT16_COMPARE(equ, !(a < b || a > b))
LEVIN_EMULATOR_FLOAT16_COMPARE(neu, a != b)
LEVIN_EMULATOR_FLOAT16_COMPARE(leu, !(a > b))
LEVIN_EMULATOR_FLOAT16_COMPARE(geu, !(a < b))
LEVIN_EMULATOR_FLOAT16_COMPARE(ltu, !(a >= b))
LEVIN_EMULATOR_FLOAT16_COMPARE(gtu, !(a <= b))
#undef LEVIN_EMULATOR_FLOAT16_COMPARE
#undef LEVIN_EMULATOR_FLOAT16_COMPARE_OF

/// Defines T's operators. A comparison of pairs holds if it holds for both elements. These are not templates, so that
/// an expression of mixed types is as ambiguous as under nvcc.
#define LEVIN_EMULATOR_FLOAT16_OPERATORS(T, add, sub, mul, div, neg, eq, neu, lt, gt, le, ge, one) \
  inline T operator+(const T& a, const T& b) { return add(a, b); }                                 \
  inline T operator-(const T& a, const T& b) { return sub(a, b); }                                 \
  inline T operator*(const T& a, const T& b) { return mul(a, b); }                                 \
  inline T operator/(const T& a, const T& b) { return div(a, b); }                                 \
  inline T& operator+=(T& a, const T& b) { return a = add(a, b); }                                 \
  inline T& operator-=(T& a, const T& b) { return a = sub(a, b); }                                 \
  inline T& operator*=(T& a, const T& b) { return a = mul(a, b); }                                 \
  inline T& operator/=(T& a, const T& b) { return a = div(a, b); }                                 \
  inline T& operator++(T& a) { return a = add(a, one); }                                           \
  inline T& operator--(T& a) { return a = sub(a, one); }                                           \
  inline T operator++(T& a, int) {                                                                 \
    const T before = a;                                                                            \
    ++a;                                                                                           \
    return before;                                                                                 \
  }                                                                                                \
  inline T operator--(T& a, int) {                                                                 \
    const T before = a;                                                                            \
    --a;                                                                                           \
    return before;                                                                                 \
  }                                                                                                \
  inline T operator+(const T& a) { return a; }                                                     \
  inline T operator-(const T& a) { return neg(a); }                                                \
  inline bool operator==(const T& a, const T& b) { return eq(a, b); }                              \
  inline bool operator!=(const T& a, const T& b) { return neu(a, b); }                             \
  inline bool operator<(const T& a, const T& b) { return lt(a, b); }                               \
  inline bool operator>(const T& a, const T& b) { return gt(a, b); }                               \
  inline bool operator<=(const T& a, const T& b) { return le(a, b); }                              \
  inline bool operator>=(const T& a, const T& b) { return ge(a, b); }
#define LEVIN_EMULATOR_FLOAT16_OPERATORS_OF(T, T2)                                                                \
  LEVIN_EMULATOR_FLOAT16_OPERATORS(T, __hadd, __hsub, __hmul, __hdiv, __hneg, __heq, __hneu, __hlt, __hgt, __hle, \
                                   __hge, T(1))                                                                   \
  LEVIN_EMULATOR_FLOAT16_OPERATORS(T2, __hadd2, __hsub2, __hmul2, __h2div, __hneg2, __hbeq2, __hbneu2, __hblt2,   \
                                   __hbgt2, __hble2, __hbge2, T2(T(1), T(1)))
LEVIN_EMULATOR_FLOAT16_OPERATORS_OF(__half, __half2)
LEVIN_EMULATOR_FLOAT16_OPERATORS_OF(__nv_bfloat16, __nv_bfloat162)
#undef LEVIN_EMULATOR_FLOAT16_OPERATORS
#undef LEVIN_EMULATOR_FLOAT16_OPERATORS_OF
