// Activations and their gradients.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/activation.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/cpu/elementwise/rows-inl.h"

#include <numbers>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr double kHalfSqrt = 0.5 * std::numbers::sqrt2;                             // 1 / sqrt(2)
constexpr double kDensity = 0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;   // 1 / sqrt(2 pi)
constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;       // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;

struct Relu {
  template <class D, class V>
  static HWY_INLINE V call(D d, V x, V, V) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x); }
};
struct LeakyRelu {
  template <class D, class V>
  static HWY_INLINE V call(D d, V x, V slope, V) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, slope));
  }
};
struct ReluBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V y, V, V) { return hn::IfThenZeroElse(hn::Le(y, hn::Zero(d)), g); }
};
struct LeakyReluBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V x, V slope, V) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, hn::Mul(g, slope));
  }
};
struct ClampBackward {
  template <class D, class V>
  static HWY_INLINE V call(D, V g, V x, V low, V high) {
    return hn::IfThenElseZero(hn::And(hn::Ge(x, low), hn::Le(x, high)), g);
  }
};
struct Elu {
  template <class D, class V>
  static HWY_INLINE V call(D d, V x, V alpha, V) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(alpha, expm1_v(d, x)));
  }
};
struct EluBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V x, V alpha, V) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, hn::Mul(g, hn::Mul(alpha, exp_v(d, x))));
  }
};

/// Standard normal distribution function.
template <class D, class V>
HWY_INLINE V normal_cdf(D d, V x) {
  const V half = constant(d, 0.5);
  return hn::MulAdd(half, quick_erf_v(d, hn::Mul(x, constant(d, kHalfSqrt))), half);
}
struct Gelu {
  template <class D, class V>
  static HWY_INLINE V call(D d, V x, V, V) { return hn::Mul(x, normal_cdf(d, x)); }
};
struct GeluBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V x, V, V) {
    const V density = hn::Mul(constant(d, kDensity), exp_v(d, hn::Mul(hn::Mul(x, x), constant(d, -0.5))));
    return hn::Mul(g, hn::MulAdd(x, density, normal_cdf(d, x)));
  }
};

template <class D, class V>
HWY_INLINE V tanh_of_gelu(D d, V x, V square) {
  return quick_tanh_v(d, hn::Mul(hn::Mul(constant(d, kTanhScale), x),
                                 hn::MulAdd(constant(d, kTanhCubic), square, constant(d, 1.0))));
}
struct GeluTanh {
  template <class D, class V>
  static HWY_INLINE V call(D d, V x, V, V) {
    const V half = hn::Mul(x, constant(d, 0.5));  // times 1 + tanh: half + half * tanh would lose the sign of -0
    return hn::Mul(half, hn::Add(constant(d, 1.0), tanh_of_gelu(d, x, hn::Mul(x, x))));
  }
};
struct GeluTanhBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V x, V, V) {
    const V one = constant(d, 1.0), half = constant(d, 0.5), square = hn::Mul(x, x);
    const V t = tanh_of_gelu(d, x, square);
    const V inner = hn::Mul(constant(d, kTanhScale), hn::MulAdd(constant(d, 3.0 * kTanhCubic), square, one));
    const V slope = hn::Mul(hn::NegMulAdd(t, t, one), inner);
    return hn::Mul(g, hn::Mul(half, hn::MulAdd(x, slope, hn::Add(one, t))));
  }
};

struct Silu {
  template <class D, class V>
  static HWY_INLINE V call(D d, V x, V, V) { return hn::Div(x, hn::Add(constant(d, 1.0), exp_v(d, hn::Neg(x)))); }
};
struct SiluBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V x, V, V) {
    const V one = constant(d, 1.0), s = sigmoid_v(d, x);
    return hn::Mul(g, hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one)));
  }
};
struct SigmoidBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V y, V, V) { return hn::Mul(g, hn::Mul(y, hn::Sub(constant(d, 1.0), y))); }
};
struct TanhBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V y, V, V) { return hn::Mul(g, hn::NegMulAdd(y, y, constant(d, 1.0))); }
};
struct Softplus {
  template <class D, class V>
  static HWY_INLINE V call(D d, V x, V beta, V threshold) {
    const V scaled = hn::Mul(x, beta);
    return hn::IfThenElse(hn::Gt(scaled, threshold), x, hn::Div(log1p_v(d, exp_v(d, scaled)), beta));
  }
};
struct SoftplusBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V x, V beta, V threshold) {
    const V scaled = hn::Mul(x, beta);
    return hn::IfThenElse(hn::Gt(scaled, threshold), g, hn::Mul(g, sigmoid_v(d, scaled)));
  }
};
struct Logsigmoid {
  template <class D, class V>
  static HWY_INLINE V call(D d, V x, V, V) {
    const V negative = hn::IfThenElseZero(hn::Lt(x, hn::Zero(d)), x);
    return keep_nan(x, hn::Sub(negative, log1p_v(d, exp_v(d, hn::Neg(hn::Abs(x))))));
  }
};
struct LogsigmoidBackward {
  template <class D, class V>
  static HWY_INLINE V call(D d, V g, V x, V, V) { return hn::Mul(g, sigmoid_v(d, hn::Neg(x))); }
};

}  // namespace

LEVIN_TARGET_ROWS(relu, Relu, 1)
LEVIN_TARGET_ROWS(leaky_relu, LeakyRelu, 1)
LEVIN_TARGET_ROWS(elu, Elu, 1)
LEVIN_TARGET_ROWS(gelu, Gelu, 1)
LEVIN_TARGET_ROWS(gelu_tanh, GeluTanh, 1)
LEVIN_TARGET_ROWS(silu, Silu, 1)
LEVIN_TARGET_ROWS(softplus, Softplus, 1)
LEVIN_TARGET_ROWS(logsigmoid, Logsigmoid, 1)
LEVIN_TARGET_ROWS(relu_backward, ReluBackward, 2)
LEVIN_TARGET_ROWS(leaky_relu_backward, LeakyReluBackward, 2)
LEVIN_TARGET_ROWS(clamp_backward, ClampBackward, 2)
LEVIN_TARGET_ROWS(elu_backward, EluBackward, 2)
LEVIN_TARGET_ROWS(gelu_backward, GeluBackward, 2)
LEVIN_TARGET_ROWS(gelu_tanh_backward, GeluTanhBackward, 2)
LEVIN_TARGET_ROWS(silu_backward, SiluBackward, 2)
LEVIN_TARGET_ROWS(sigmoid_backward, SigmoidBackward, 2)
LEVIN_TARGET_ROWS(tanh_backward, TanhBackward, 2)
LEVIN_TARGET_ROWS(softplus_backward, SoftplusBackward, 2)
LEVIN_TARGET_ROWS(logsigmoid_backward, LogsigmoidBackward, 2)

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
LEVIN_UNARY_KERNEL(relu, kReluRows)
LEVIN_UNARY_KERNEL(leaky_relu, kNoRows)
LEVIN_UNARY_KERNEL(elu, kNoRows)
LEVIN_UNARY_KERNEL(gelu, kNoRows)
LEVIN_UNARY_KERNEL(gelu_tanh, kNoRows)
LEVIN_UNARY_KERNEL(silu, kNoRows)
LEVIN_UNARY_KERNEL(softplus, kNoRows)
LEVIN_UNARY_KERNEL(logsigmoid, kNoRows)
LEVIN_BINARY_KERNEL(relu_backward, kNoRows)
LEVIN_BINARY_KERNEL(leaky_relu_backward, kNoRows)
LEVIN_BINARY_KERNEL(clamp_backward, kNoRows)
LEVIN_BINARY_KERNEL(elu_backward, kNoRows)
LEVIN_BINARY_KERNEL(gelu_backward, kNoRows)
LEVIN_BINARY_KERNEL(gelu_tanh_backward, kNoRows)
LEVIN_BINARY_KERNEL(silu_backward, kNoRows)
LEVIN_BINARY_KERNEL(sigmoid_backward, kNoRows)
LEVIN_BINARY_KERNEL(tanh_backward, kNoRows)
LEVIN_BINARY_KERNEL(softplus_backward, kNoRows)
LEVIN_BINARY_KERNEL(logsigmoid_backward, kNoRows)
}  // namespace levin::kernels
#endif
