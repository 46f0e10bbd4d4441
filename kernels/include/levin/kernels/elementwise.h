#pragma once
// Contracts of the operations that work element by element.
//
// Operands broadcast to `out`'s sizes by the rules of broadcast_strides; they may have any strides and any type, which
// is converted on the fly to the type in which the values are computed. f16 and bf16 are computed in f32 and rounded
// once. `out` may have any strides without overlap; it may be exactly one of the operands (same memory, sizes and
// strides) but must not overlap one in part. An operand may be TensorView::number, which costs no memory. Work: every
// operand that is not a number is read once and `out` is written once; flops are named per group.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// out = f(x). Computed in out's type, or in x's where out is bool. Integers are accepted where said.
struct UnaryArgs {
  TensorView out, x;
  double p0 = 0.0, p1 = 0.0;
};
using UnaryKernel = Kernel<void(const UnaryArgs&, Stream&)>;

// One flop an element. All numeric types: -x (wraps), |x|, sign (0 at NaN), x * x.
extern constinit UnaryKernel neg, abs, sign, square;
// Floating types. round goes half to even.
extern constinit UnaryKernel floor, ceil, round, trunc, reciprocal, sqrt, rsqrt;
// Floating types; about 20 flops; within 4 units in the last place.
extern constinit UnaryKernel exp, expm1, log, log2, log10, log1p, sin, cos, tan, tanh, sigmoid, erf;
/// min(max(x, p0), p1); NaN stays. All numeric types; infinite bounds stand for none.
extern constinit UnaryKernel clamp;
/// max(x, 0); NaN stays. All numeric types.
extern constinit UnaryKernel relu;
/// x where x > 0, else p0 * x.
extern constinit UnaryKernel leaky_relu;
/// x where x > 0, else p0 * expm1(x).
extern constinit UnaryKernel elu;
/// x * Phi(x), by erf; and 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016).
extern constinit UnaryKernel gelu, gelu_tanh;
/// x / (1 + exp(-x)).
extern constinit UnaryKernel silu;
/// log1p(exp(p0 x)) / p0, or x where p0 x > p1.
extern constinit UnaryKernel softplus;
/// min(x, 0) - log1p(exp(-|x|)).
extern constinit UnaryKernel logsigmoid;
// out is bool, x of any type.
extern constinit UnaryKernel isnan, isinf, isfinite, logical_not;

/// out = f(a, b), computed in `compute`.
struct BinaryArgs {
  TensorView out, a, b;
  DType compute = DType::f32;
  double p0 = 1.0, p1 = 0.0;
};
using BinaryKernel = Kernel<void(const BinaryArgs&, Stream&)>;

/// a + p0 * b, fused where the machine can. All types; for bool: or.
extern constinit BinaryKernel add;
/// a * b. All types; for bool: and.
extern constinit BinaryKernel mul;
/// a / b. Floating types.
extern constinit BinaryKernel div;
/// Numeric types. Quotient rounded to minus infinity, and what is left of it (sign of b). Integers refuse b = 0.
extern constinit BinaryKernel floor_divide, remainder;
/// a ^ b. Numeric types; an integer to a negative power is 0 unless a is 1 or -1. About 40 flops.
extern constinit BinaryKernel pow;
/// NaN in either gives NaN. All types.
extern constinit BinaryKernel maximum, minimum;
/// Angle of (b, a). Floating types.
extern constinit BinaryKernel atan2;
// out is bool, `compute` any type.
extern constinit BinaryKernel eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor;

// Gradients: a is the gradient of the output; floating types.
/// 0 where b <= 0, else a; b is the input or the output of relu.
extern constinit BinaryKernel relu_backward;
/// a where b > 0, else p0 * a; b is the input of leaky_relu.
extern constinit BinaryKernel leaky_relu_backward;
/// a where p0 <= b <= p1, else 0; b is the input of clamp.
extern constinit BinaryKernel clamp_backward;
/// b is the output: a b (1 - b) and a (1 - b^2).
extern constinit BinaryKernel sigmoid_backward, tanh_backward;
// b is the input.
extern constinit BinaryKernel gelu_backward, gelu_tanh_backward, silu_backward, elu_backward, softplus_backward,
    logsigmoid_backward;

/// out = f(a, b, c), computed in `compute`.
struct TernaryArgs {
  TensorView out, a, b, c;
  DType compute = DType::f32;
  double p0 = 1.0;
};
using TernaryKernel = Kernel<void(const TernaryArgs&, Stream&)>;

/// b where a, else c. a is bool, all types for the others; no flops.
extern constinit TernaryKernel where;
/// a + c (b - a), from the nearer end. Floating types.
extern constinit TernaryKernel lerp;
/// a + p0 * b * c and a + p0 * b / c. Numeric types, floating types.
extern constinit TernaryKernel addcmul, addcdiv;

}  // namespace levin::kernels
