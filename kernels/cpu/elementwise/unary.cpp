// Functions of one tensor.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/unary.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/cpu/elementwise/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

#define LEVIN_UNARY_OP(Name, expression)                                                              \
  struct Name {                                                                                       \
    template <class D, class V>                                                                       \
    static HWY_INLINE V call([[maybe_unused]] D d, V x, [[maybe_unused]] V p0, [[maybe_unused]] V p1) { \
      return expression;                                                                              \
    }                                                                                                 \
  };

template <class D, class V>
HWY_INLINE V sign_v(D d, V x) {
  const V zero = hn::Zero(d), one = constant(d, 1.0);
  return hn::Sub(hn::IfThenElseZero(hn::Gt(x, zero), one), hn::IfThenElseZero(hn::Lt(x, zero), one));
}

template <class V>
HWY_INLINE V clamp_v(V x, V low, V high) {
  const V y = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(y, high), high, y);
}

LEVIN_UNARY_OP(Neg, hn::Neg(x))
LEVIN_UNARY_OP(Abs, hn::Abs(x))
LEVIN_UNARY_OP(Sign, sign_v(d, x))
LEVIN_UNARY_OP(Square, hn::Mul(x, x))
LEVIN_UNARY_OP(Floor, hn::Floor(x))
LEVIN_UNARY_OP(Ceil, hn::Ceil(x))
LEVIN_UNARY_OP(Round, hn::Round(x))
LEVIN_UNARY_OP(Trunc, hn::Trunc(x))
LEVIN_UNARY_OP(Reciprocal, hn::Div(constant(d, 1.0), x))
LEVIN_UNARY_OP(Sqrt, hn::Sqrt(x))
LEVIN_UNARY_OP(Rsqrt, hn::Div(constant(d, 1.0), hn::Sqrt(x)))
LEVIN_UNARY_OP(Exp, exp_v(d, x))
LEVIN_UNARY_OP(Expm1, expm1_v(d, x))
LEVIN_UNARY_OP(Log, log_v(d, x))
LEVIN_UNARY_OP(Log2, log_ends(d, x, hn::Log2(d, x)))
LEVIN_UNARY_OP(Log10, log_ends(d, x, hn::Log10(d, x)))
LEVIN_UNARY_OP(Log1p, log1p_v(d, x))
LEVIN_UNARY_OP(Sin, sin_v(d, x))
LEVIN_UNARY_OP(Cos, cos_v(d, x))
LEVIN_UNARY_OP(Tan, lanewise(d, +[](hn::TFromD<D> v) { return std::tan(v); }, x))
LEVIN_UNARY_OP(Tanh, tanh_v(d, x))
LEVIN_UNARY_OP(Sigmoid, sigmoid_v(d, x))
LEVIN_UNARY_OP(Erf, erf_v(d, x))
LEVIN_UNARY_OP(Clamp, clamp_v(x, p0, p1))

#undef LEVIN_UNARY_OP

}  // namespace

LEVIN_TARGET_ROWS(neg, Neg, 1)
LEVIN_TARGET_ROWS(abs, Abs, 1)
LEVIN_TARGET_ROWS(sign, Sign, 1)
LEVIN_TARGET_ROWS(square, Square, 1)
LEVIN_TARGET_ROWS(floor, Floor, 1)
LEVIN_TARGET_ROWS(ceil, Ceil, 1)
LEVIN_TARGET_ROWS(round, Round, 1)
LEVIN_TARGET_ROWS(trunc, Trunc, 1)
LEVIN_TARGET_ROWS(reciprocal, Reciprocal, 1)
LEVIN_TARGET_ROWS(sqrt, Sqrt, 1)
LEVIN_TARGET_ROWS(rsqrt, Rsqrt, 1)
LEVIN_TARGET_ROWS(exp, Exp, 1)
LEVIN_TARGET_ROWS(expm1, Expm1, 1)
LEVIN_TARGET_ROWS(log, Log, 1)
LEVIN_TARGET_ROWS(log2, Log2, 1)
LEVIN_TARGET_ROWS(log10, Log10, 1)
LEVIN_TARGET_ROWS(log1p, Log1p, 1)
LEVIN_TARGET_ROWS(sin, Sin, 1)
LEVIN_TARGET_ROWS(cos, Cos, 1)
LEVIN_TARGET_ROWS(tan, Tan, 1)
LEVIN_TARGET_ROWS(tanh, Tanh, 1)
LEVIN_TARGET_ROWS(sigmoid, Sigmoid, 1)
LEVIN_TARGET_ROWS(erf, Erf, 1)
LEVIN_TARGET_ROWS(clamp, Clamp, 1)

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
LEVIN_UNARY_KERNEL(neg, kNegRows)
LEVIN_UNARY_KERNEL(abs, kAbsRows)
LEVIN_UNARY_KERNEL(sign, kSignRows)
LEVIN_UNARY_KERNEL(square, kSquareRows)
LEVIN_UNARY_KERNEL(floor, kNoRows)
LEVIN_UNARY_KERNEL(ceil, kNoRows)
LEVIN_UNARY_KERNEL(round, kNoRows)
LEVIN_UNARY_KERNEL(trunc, kNoRows)
LEVIN_UNARY_KERNEL(reciprocal, kNoRows)
LEVIN_UNARY_KERNEL(sqrt, kNoRows)
LEVIN_UNARY_KERNEL(rsqrt, kNoRows)
LEVIN_UNARY_KERNEL(exp, kNoRows)
LEVIN_UNARY_KERNEL(expm1, kNoRows)
LEVIN_UNARY_KERNEL(log, kNoRows)
LEVIN_UNARY_KERNEL(log2, kNoRows)
LEVIN_UNARY_KERNEL(log10, kNoRows)
LEVIN_UNARY_KERNEL(log1p, kNoRows)
LEVIN_UNARY_KERNEL(sin, kNoRows)
LEVIN_UNARY_KERNEL(cos, kNoRows)
LEVIN_UNARY_KERNEL(tan, kNoRows)
LEVIN_UNARY_KERNEL(tanh, kNoRows)
LEVIN_UNARY_KERNEL(sigmoid, kNoRows)
LEVIN_UNARY_KERNEL(erf, kNoRows)
LEVIN_UNARY_KERNEL(clamp, kClampRows)
}  // namespace levin::kernels
#endif
