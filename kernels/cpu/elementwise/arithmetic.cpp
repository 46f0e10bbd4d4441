// a + b, a * b and their like: bound by memory.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/arithmetic.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/cpu/elementwise/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

struct Add {
  template <class D, class V>
  static HWY_INLINE V call(D, V a, V b, V p0, V) { return hn::MulAdd(p0, b, a); }
};
struct Mul {
  template <class D, class V>
  static HWY_INLINE V call(D, V a, V b, V, V) { return hn::Mul(a, b); }
};
struct Div {
  template <class D, class V>
  static HWY_INLINE V call(D, V a, V b, V, V) { return hn::Div(a, b); }
};
struct Maximum {
  template <class D, class V>
  static HWY_INLINE V call(D, V a, V b, V, V) { return keep_nan(a, hn::IfThenElse(hn::Gt(a, b), a, b)); }
};
struct Minimum {
  template <class D, class V>
  static HWY_INLINE V call(D, V a, V b, V, V) { return keep_nan(a, hn::IfThenElse(hn::Lt(a, b), a, b)); }
};
struct Lerp {
  template <class D, class V>
  static HWY_INLINE V call(D d, V a, V b, V w, V, V) {
    const V difference = hn::Sub(b, a);
    const V from_end = hn::NegMulAdd(hn::Sub(constant(d, 1.0), w), difference, b);
    return hn::IfThenElse(hn::Lt(hn::Abs(w), constant(d, 0.5)), hn::MulAdd(w, difference, a), from_end);
  }
};
struct Addcmul {
  template <class D, class V>
  static HWY_INLINE V call(D, V a, V b, V c, V p0, V) { return hn::MulAdd(hn::Mul(p0, b), c, a); }
};
struct Addcdiv {
  template <class D, class V>
  static HWY_INLINE V call(D, V a, V b, V c, V p0, V) { return hn::Add(a, hn::Div(hn::Mul(p0, b), c)); }
};

}  // namespace

LEVIN_TARGET_ROWS(add, Add, 2)
LEVIN_TARGET_ROWS(mul, Mul, 2)
LEVIN_TARGET_ROWS(div, Div, 2)
LEVIN_TARGET_ROWS(maximum, Maximum, 2)
LEVIN_TARGET_ROWS(minimum, Minimum, 2)
LEVIN_TARGET_ROWS(lerp, Lerp, 3)
LEVIN_TARGET_ROWS(addcmul, Addcmul, 3)
LEVIN_TARGET_ROWS(addcdiv, Addcdiv, 3)

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
LEVIN_BINARY_KERNEL(add, kAddRows)
LEVIN_BINARY_KERNEL(mul, kMulRows)
LEVIN_BINARY_KERNEL(div, kNoRows)
LEVIN_BINARY_KERNEL(maximum, kMaximumRows)
LEVIN_BINARY_KERNEL(minimum, kMinimumRows)
LEVIN_TERNARY_KERNEL(lerp, kNoRows)
LEVIN_TERNARY_KERNEL(addcmul, kAddcmulRows)
LEVIN_TERNARY_KERNEL(addcdiv, kNoRows)
}  // namespace levin::kernels
#endif
