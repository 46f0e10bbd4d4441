// Elementwise operations, one row each. A row is read where its macro is defined: the contract (elementwise.h), the
// kernels of the CPU and of CUDA, the work of a call and, for LEVIN_UNARY_ROW, the differentiable operation come from
// it. This header has no include guard: define the macros that are needed and include it; it undefines them.
//
// Columns:
//   types       floating; rounding (floating, and integers are returned as they are); numeric (no bool); division
//               (numeric, and integers refuse a divisor b = 0); all
//   flops       per element, for the profiler
//   formula     compiled over Highway vectors and as CUDA device code. C is the type that computes, so that constants
//               are written C(0.5). x, a, b, c are the operands, p0 and p1 the parameters of the contract. `math::`
//               names the functions of both devices; others are in kernels/src/formulas.inc.
//   autocast    any, or float32 where autocast computes in float32
//   saved       the tensor that backward reads: x (the input), y (the output), or nothing
//   derivative  gradient of x in terms of tensors: g is the gradient of the output. It consists of differentiable
//               operations, so that gradients of any order follow.

#ifndef LEVIN_UNARY_ROW
#define LEVIN_UNARY_ROW(name, types, flops, formula, autocast, saved, derivative)
#endif
LEVIN_UNARY_ROW(neg, numeric, 1, math::neg(x), any, nothing, neg(g))
LEVIN_UNARY_ROW(abs, numeric, 1, math::abs(x), any, x, g * sign(x))
LEVIN_UNARY_ROW(sign, numeric, 1,
                math::where(x > C(0), C(1), C(0)) - math::where(math::is_negative(x), C(1), C(0)), any, nothing,
                zeros_like(g))
LEVIN_UNARY_ROW(square, numeric, 1, math::mul(x, x), any, x, g * 2 * x)
LEVIN_UNARY_ROW(floor, rounding, 1, math::floor(x), any, nothing, zeros_like(g))
LEVIN_UNARY_ROW(ceil, rounding, 1, math::ceil(x), any, nothing, zeros_like(g))
LEVIN_UNARY_ROW(round, rounding, 1, math::round(x), any, nothing, zeros_like(g))
LEVIN_UNARY_ROW(trunc, rounding, 1, math::trunc(x), any, nothing, zeros_like(g))
LEVIN_UNARY_ROW(reciprocal, floating, 1, C(1) / x, float32, y, neg(g * square(y)))
LEVIN_UNARY_ROW(sqrt, floating, 1, math::sqrt(x), any, y, g / (y * 2))
LEVIN_UNARY_ROW(rsqrt, floating, 1, C(1) / math::sqrt(x), float32, y, g * -0.5 * (y * square(y)))
LEVIN_UNARY_ROW(exp, floating, 20, math::exp(x), float32, y, g * y)
LEVIN_UNARY_ROW(expm1, floating, 20, math::expm1(x), float32, y, g * (y + 1))
LEVIN_UNARY_ROW(log, floating, 20, math::log(x), float32, x, g / x)
LEVIN_UNARY_ROW(log2, floating, 20, math::log2(x), float32, x, g / (x * std::numbers::ln2))
LEVIN_UNARY_ROW(log10, floating, 20, math::log10(x), float32, x, g / (x * std::numbers::ln10))
LEVIN_UNARY_ROW(log1p, floating, 20, math::log1p(x), float32, x, g / (x + 1))
LEVIN_UNARY_ROW(sin, floating, 20, math::sin(x), any, x, g * cos(x))
LEVIN_UNARY_ROW(cos, floating, 20, math::cos(x), any, x, neg(g * sin(x)))
LEVIN_UNARY_ROW(tan, floating, 20, math::tan(x), float32, y, g * (square(y) + 1))
LEVIN_UNARY_ROW(lgamma, floating, 60, math::lgamma(x), float32, x, g * digamma(x))
LEVIN_UNARY_ROW(erfinv, floating, 60, math::erfinv(x), float32, y,
                g * (0.5 / std::numbers::inv_sqrtpi) * exp(square(y)))
LEVIN_UNARY_ROW(exp2, floating, 20, math::exp2(x), float32, y, g * y * std::numbers::ln2)
LEVIN_UNARY_ROW(asin, floating, 20, math::asin(x), float32, x, g * rsqrt(1 - square(x)))
LEVIN_UNARY_ROW(acos, floating, 20, math::acos(x), float32, x, neg(g * rsqrt(1 - square(x))))
LEVIN_UNARY_ROW(atan, floating, 20, math::atan(x), any, x, g / (square(x) + 1))
LEVIN_UNARY_ROW(sinh, floating, 20, math::sinh(x), float32, x, g * cosh(x))
LEVIN_UNARY_ROW(cosh, floating, 20, math::cosh(x), float32, x, g * sinh(x))
LEVIN_UNARY_ROW(asinh, floating, 20, math::asinh(x), any, x, g * rsqrt(square(x) + 1))
LEVIN_UNARY_ROW(acosh, floating, 20, math::acosh(x), any, x, g * rsqrt(square(x) - 1))
LEVIN_UNARY_ROW(atanh, floating, 20, math::atanh(x), any, x, g / (1 - square(x)))
LEVIN_UNARY_ROW(erfc, floating, 20, math::erfc(x), any, x,
                g * (-2.0 * std::numbers::inv_sqrtpi) * exp(neg(square(x))))
LEVIN_UNARY_ROW(erf, floating, 20, math::erf(x), any, x,
                g * (2.0 * std::numbers::inv_sqrtpi) * exp(neg(square(x))))
#undef LEVIN_UNARY_ROW

// Activations, each with a fused gradient <name>_backward(g, v), where v is the saved value: x or y.
//   slope       formula of that gradient; flops for both
//   second      derivative of the slope at g = 1 by x or y, in tensors; Tensor() where it is zero
#ifndef LEVIN_ACTIVATION_ROW
#define LEVIN_ACTIVATION_ROW(name, types, flops, formula, saved, slope_flops, slope, second)
#endif
LEVIN_ACTIVATION_ROW(relu, numeric, 1, math::where(math::is_negative(x), C(0), x), y,
                     1, math::where(y <= C(0), C(0), g), Tensor())
LEVIN_ACTIVATION_ROW(leaky_relu, floating, 1, math::where(x > C(0), x, x * p0), x,
                     1, math::where(x > C(0), g, g * p0), Tensor())
LEVIN_ACTIVATION_ROW(clamp, numeric, 1, math::clamp(x, p0, p1), x,
                     1, math::where(x >= p0 && x <= p1, g, C(0)), Tensor())
LEVIN_ACTIVATION_ROW(elu, floating, 20, math::where(x > C(0), x, p0 * math::expm1(x)), x,
                     20, math::where(x > C(0), g, g * (p0 * math::exp(x))), masked_fill(exp(x) * p0, x > 0, 0))
LEVIN_ACTIVATION_ROW(selu, floating, 20, C(kSeluScale) * math::where(x > C(0), x, C(kSeluAlpha) * math::expm1(x)), x,
                     20, C(kSeluScale) * math::where(x > C(0), g, g * (C(kSeluAlpha) * math::exp(x))),
                     selu_second(x))
LEVIN_ACTIVATION_ROW(hardsigmoid, floating, 3, math::clamp(x + C(3), C(0), C(6)) / C(6), x,
                     3, math::where(x > C(-3) && x < C(3), g / C(6), C(0)), Tensor())
LEVIN_ACTIVATION_ROW(hardswish, floating, 4, x * (math::clamp(x + C(3), C(0), C(6)) / C(6)), x,
                     4, math::where(x < C(-3), C(0), math::where(x > C(3), g, g * (x / C(3) + C(0.5)))),
                     logical_and(x > -3, x < 3).to(x.dtype()) / 3)
LEVIN_ACTIVATION_ROW(mish, floating, 30, x * tanh_of_softplus(x), x,
                     30, g * mish_slope(x), mish_second(x))
LEVIN_ACTIVATION_ROW(softsign, floating, 3, x / (math::abs(x) + C(1)), x,
                     3, g / math::mul(math::abs(x) + C(1), math::abs(x) + C(1)),
                     sign(x) * -2 / pow(abs(x) + 1, 3))
LEVIN_ACTIVATION_ROW(sigmoid, floating, 20, math::sigmoid(x), y,
                     3, g * (y * (C(1) - y)), 1 - y * 2)
LEVIN_ACTIVATION_ROW(tanh, floating, 20, math::tanh(x), y,
                     3, g * math::fma(-y, y, C(1)), y * -2)
LEVIN_ACTIVATION_ROW(gelu, floating, 20, x * math::quick_normal_cdf(x), x,
                     20, g * gelu_slope(x), gelu_second(x))
LEVIN_ACTIVATION_ROW(gelu_tanh, floating, 20, x * C(0.5) * (C(1) + tanh_of_gelu(x)), x,
                     20, g * gelu_tanh_slope(x), gelu_tanh_second(x))
LEVIN_ACTIVATION_ROW(silu, floating, 20, x / (C(1) + math::exp(-x)), x,
                     20, g * silu_slope(x), silu_second(x))
LEVIN_ACTIVATION_ROW(softplus, floating, 20,
                     math::where(x * p0 > p1, x, math::log1p(math::exp(x * p0)) / p0), x,
                     20, math::where(x * p0 > p1, g, g * math::sigmoid(x * p0)), softplus_second(x, p0, p1))
LEVIN_ACTIVATION_ROW(logsigmoid, floating, 20,
                     math::where(x < C(0), x, C(0)) - math::log1p(math::exp(-math::abs(x))), x,
                     20, g * math::sigmoid(-x), logsigmoid_second(x))
#undef LEVIN_ACTIVATION_ROW

#ifndef LEVIN_BINARY_ROW
#define LEVIN_BINARY_ROW(name, types, flops, formula)
#endif
LEVIN_BINARY_ROW(add, all, 1, math::fma(p0, b, a))
LEVIN_BINARY_ROW(mul, all, 1, math::mul(a, b))
LEVIN_BINARY_ROW(div, floating, 1, a / b)
LEVIN_BINARY_ROW(maximum, all, 1, math::keep_nan(a, math::where(a > b, a, b)))
LEVIN_BINARY_ROW(minimum, all, 1, math::keep_nan(a, math::where(a < b, a, b)))
LEVIN_BINARY_ROW(floor_divide, division, 1, floored_quotient(a, b))
LEVIN_BINARY_ROW(remainder, division, 1, floored_remainder(a, b))
LEVIN_BINARY_ROW(copysign, floating, 1, math::copysign(a, b))
LEVIN_BINARY_ROW(prelu, floating, 1, math::where(a > C(0), a, a * b))
LEVIN_BINARY_ROW(huber, floating, 5, huber_of(a - b, p0))
LEVIN_BINARY_ROW(glu, floating, 20, a / (C(1) + math::exp(-b)))
LEVIN_BINARY_ROW(atan2, floating, 20, math::atan2(a, b))
LEVIN_BINARY_ROW(hypot, floating, 20, math::hypot(a, b))
#undef LEVIN_BINARY_ROW

// Operations on the bits of two tensors of integers, and the same on bool.
#ifndef LEVIN_BITWISE_ROW
#define LEVIN_BITWISE_ROW(name, formula)
#endif
LEVIN_BITWISE_ROW(bitwise_and, a & b)
LEVIN_BITWISE_ROW(bitwise_or, a | b)
LEVIN_BITWISE_ROW(bitwise_xor, a ^ b)
#undef LEVIN_BITWISE_ROW

// Operations of two tensors that the CPU computes one value at a time, with functions of the standard library.
#ifndef LEVIN_SCALAR_ROW
#define LEVIN_SCALAR_ROW(name, types, flops, formula)
#endif
LEVIN_SCALAR_ROW(pow, numeric, 40, math::pow(a, b))
LEVIN_SCALAR_ROW(polygamma, floating, 100, math::polygamma(a, b))
#undef LEVIN_SCALAR_ROW

#ifndef LEVIN_TERNARY_ROW
#define LEVIN_TERNARY_ROW(name, types, flops, formula)
#endif
// lerp interpolates from the nearer end, so that both ends are reached exactly.
LEVIN_TERNARY_ROW(lerp, floating, 3,
                  math::where(math::abs(c) < C(0.5), math::fma(c, b - a, a), math::fma(-(C(1) - c), b - a, b)))
LEVIN_TERNARY_ROW(addcmul, numeric, 3, math::fma(math::mul(p0, b), c, a))
LEVIN_TERNARY_ROW(addcdiv, floating, 3, a + p0 * b / c)
// Gradients, times c, of glu(a, b) by b and of huber(a, b) by a; the second of half the square with an infinite limit.
LEVIN_TERNARY_ROW(glu_slope, floating, 20, c * a * sigmoid_slope(b))
LEVIN_TERNARY_ROW(huber_slope, floating, 4, c * math::clamp(a - b, -p0, p0))
#undef LEVIN_TERNARY_ROW

// Conditions: the result is bool, the operands are of any type. The CPU compiles these formulas over single values, in
// loops that compilers vectorise. The differentiable operation, which has no gradient, comes from the row too.

// Comparisons, also with a number.
#ifndef LEVIN_COMPARISON_ROW
#define LEVIN_COMPARISON_ROW(name, formula)
#endif
LEVIN_COMPARISON_ROW(eq, a == b)
LEVIN_COMPARISON_ROW(ne, a != b)
LEVIN_COMPARISON_ROW(lt, a < b)
LEVIN_COMPARISON_ROW(le, a <= b)
#undef LEVIN_COMPARISON_ROW

// Comparisons that exchange the operands of another one.
#ifndef LEVIN_EXCHANGED_ROW
#define LEVIN_EXCHANGED_ROW(name, other)
#endif
LEVIN_EXCHANGED_ROW(gt, lt)
LEVIN_EXCHANGED_ROW(ge, le)
#undef LEVIN_EXCHANGED_ROW

#ifndef LEVIN_LOGICAL_ROW
#define LEVIN_LOGICAL_ROW(name, formula)
#endif
LEVIN_LOGICAL_ROW(logical_and, (a != C(0)) & (b != C(0)))
LEVIN_LOGICAL_ROW(logical_or, (a != C(0)) | (b != C(0)))
LEVIN_LOGICAL_ROW(logical_xor, (a != C(0)) != (b != C(0)))
#undef LEVIN_LOGICAL_ROW

// Properties of one value.
//   integers    never or always, if that is the answer for every integer and bool; computed
#ifndef LEVIN_PROPERTY_ROW
#define LEVIN_PROPERTY_ROW(name, integers, formula)
#endif
LEVIN_PROPERTY_ROW(isnan, never, x != x)
LEVIN_PROPERTY_ROW(isinf, never, math::abs(x) == std::numeric_limits<C>::infinity())
LEVIN_PROPERTY_ROW(isfinite, always, math::abs(x) <= std::numeric_limits<C>::max())
LEVIN_PROPERTY_ROW(logical_not, computed, x == C(0))
#undef LEVIN_PROPERTY_ROW
