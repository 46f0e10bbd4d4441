#pragma once
// Mathematical functions by type, in a separate namespace because the kernels' launchers have the same names. Formulas
// of elementwise_rows.h use them; kernels/cpu/elementwise/number-inl.h has the same for the CPU.

#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/ptx.h"
#include "kernels/src/integer_math.h"
#include "kernels/src/special_functions.h"

#include <cmath>

namespace levin::kernels::cuda::math {

#define LEVIN_MATH_1(name)                                       \
  __device__ inline float name(float x) { return ::name##f(x); } \
  __device__ inline double name(double x) { return ::name(x); }
#define LEVIN_MATH_2(name)                                                   \
  __device__ inline float name(float x, float y) { return ::name##f(x, y); } \
  __device__ inline double name(double x, double y) { return ::name(x, y); }
LEVIN_MATH_1(fabs)
LEVIN_MATH_1(floor)
LEVIN_MATH_1(ceil)
LEVIN_MATH_1(rint)
LEVIN_MATH_1(trunc)
LEVIN_MATH_1(sqrt)
LEVIN_MATH_1(exp)
LEVIN_MATH_1(expm1)
LEVIN_MATH_1(log)
LEVIN_MATH_1(log2)
LEVIN_MATH_1(log10)
LEVIN_MATH_1(log1p)
LEVIN_MATH_1(sin)
LEVIN_MATH_1(cos)
LEVIN_MATH_1(tan)
LEVIN_MATH_1(asin)
LEVIN_MATH_1(acos)
LEVIN_MATH_1(atan)
LEVIN_MATH_1(sinh)
LEVIN_MATH_1(cosh)
LEVIN_MATH_1(asinh)
LEVIN_MATH_1(acosh)
LEVIN_MATH_1(atanh)
LEVIN_MATH_1(erfc)
LEVIN_MATH_1(exp2)
LEVIN_MATH_1(tanh)
LEVIN_MATH_1(erf)
LEVIN_MATH_2(fmod)
LEVIN_MATH_2(pow)
LEVIN_MATH_2(atan2)
LEVIN_MATH_2(hypot)
LEVIN_MATH_2(copysign)
#if defined(__CUDACC__)
LEVIN_MATH_1(lgamma)
#else  // the host's lgamma also writes a global variable
template <std::floating_point C>
inline C lgamma(C x) {
  return special::log_gamma(x);
}
#endif
#undef LEVIN_MATH_1
template <std::floating_point C>
__device__ inline C erfinv(C x) {
  return static_cast<C>(special::erfinv(x));
}
template <std::floating_point C>
__device__ inline C polygamma(C n, C x) {
  return static_cast<C>(special::polygamma(n, x));
}
#undef LEVIN_MATH_2

using integer_math::abs;
using integer_math::bits_of;
using integer_math::clamp;
using integer_math::fma;
using integer_math::is_negative;
using integer_math::keep_nan;
using integer_math::mul;
using integer_math::neg;
using integer_math::pow;
using integer_math::where;

__device__ inline float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
__device__ inline double fma(double x, double y, double z) { return ::fma(x, y, z); }

/// Computes x * y with its own rounding, so that it is not fused into a multiply-add.
__device__ inline double product(double x, double y) { return __dmul_rn(x, y); }

template <std::floating_point C>
__device__ inline C neg(C x) {
  return -x;
}
template <std::floating_point C>
__device__ inline C abs(C x) {
  return fabs(x);
}
template <std::floating_point C>
__device__ inline bool is_negative(C x) {
  return x < C(0);
}
template <std::floating_point C>
__device__ inline C mul(C x, C y) {
  return x * y;
}
template <std::floating_point C>
__device__ inline C where(bool condition, C x, C y) {
  return condition ? x : y;
}
/// Returns y, but x itself if x is NaN.
template <std::floating_point C>
__device__ inline C keep_nan(C x, C y) {
  return x != x ? x : y;
}
/// Propagates NaN.
template <std::floating_point C>
__device__ inline C clamp(C x, C low, C high) {
  const C y = x < low ? low : x;
  return y > high ? high : y;
}
/// Rounds half to even.
template <std::floating_point C>
__device__ inline C round(C x) {
  return rint(x);
}
template <std::floating_point C>
__device__ inline C sigmoid(C x) {
  return C(1) / (C(1) + exp(-x));
}

/// Computes the standard normal distribution function as accurately as gelu needs it. For x < 0 the f32 version is
/// 2^(-u R(u) - 1) with u = |x|, where R is a minimax fit for u up to 6; for other x it is the complement of that. The
/// absolute error is below 1e-7. NaN is kept.
__device__ inline float quick_normal_cdf(float x) {
  const float u = ::fabsf(x);
  float r = ::fmaf(2.83491279e-06f, u, -3.93776894e-05f);
  r = ::fmaf(r, u, 1.86180226e-04f);
  r = ::fmaf(r, u, 1.36936417e-04f);
  r = ::fmaf(r, u, -7.06342020e-03f);
  r = ::fmaf(r, u, 5.24961784e-02f);
  r = ::fmaf(r, u, 0.459208197f);
  r = ::fmaf(r, u, 1.15110521f);
  const float tail = ptx::exp2_flushed(::fmaf(-u, r, -1.0f));
  return x < 0.0f ? tail : 1.0f - tail;
}
__device__ inline double quick_normal_cdf(double x) { return ::fma(0.5, ::erf(x * 0.7071067811865476), 0.5); }

/// Computes tanh; the CPU has a faster version that is accurate enough for gelu.
template <std::floating_point C>
__device__ inline C quick_tanh(C x) {
  return tanh(x);
}

}  // namespace levin::kernels::cuda::math
