// Functions of one tensor.

#include "autocast.h"
#include "elementwise_common.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace levin {

using namespace ops;

namespace {

/// Records a function whose gradient is computed from its input, or from its output.
Tensor from_input(const char* op, const Tensor& y, const Tensor& x, BackwardFn backward) {
  if (Context* c = record(op, y, {x}, backward)) c->save(x);
  return y;
}
Tensor from_output(const char* op, const Tensor& y, const Tensor& x, BackwardFn backward) {
  if (Context* c = record(op, y, {x}, backward)) c->save_output(y);
  return y;
}

/// The function in x's type, or default_dtype() for integers.
Tensor floating(const kernels::UnaryKernel& kernel, const Tensor& x) {
  return unary(kernel, x, floating_type(x.dtype()));
}

/// Rounding leaves integers as they are.
Tensor rounding(const kernels::UnaryKernel& kernel, const Tensor& x) {
  if (!x.is_floating()) return clone(x);
  Tensor y = unary(kernel, x, x.dtype());
  record(kernel.name(), y, {x}, zero_gradient);
  return y;
}

}  // namespace

Tensor neg(const Tensor& x) {
  refuse_bool("neg", x.dtype(), "logical_not");
  Tensor y = unary(kernels::neg, x, x.dtype());
  record("neg", y, {x}, [](Context&, const Tensor& g) -> Grads { return {neg(g)}; });
  return y;
}

Tensor abs(const Tensor& x) {
  refuse_bool("abs", x.dtype(), "x itself");
  return from_input("abs", unary(kernels::abs, x, x.dtype()), x,
                    [](Context& k, const Tensor& g) -> Grads { return {mul(g, sign(k.saved(0)))}; });
}

Tensor sign(const Tensor& x) {
  refuse_bool("sign", x.dtype(), "x itself");
  Tensor y = unary(kernels::sign, x, x.dtype());
  record("sign", y, {x}, zero_gradient);
  return y;
}

Tensor exp(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return exp(v); }, x);
  return from_output("exp", floating(kernels::exp, x), x,
                     [](Context& k, const Tensor& g) -> Grads { return {mul(g, k.saved(0))}; });
}

Tensor expm1(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return expm1(v); }, x);
  return from_output("expm1", floating(kernels::expm1, x), x,
                     [](Context& k, const Tensor& g) -> Grads { return {mul(g, add(k.saved(0), 1))}; });
}

Tensor log(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return log(v); }, x);
  return from_input("log", floating(kernels::log, x), x,
                    [](Context& k, const Tensor& g) -> Grads { return {div(g, k.saved(0))}; });
}

Tensor log2(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return log2(v); }, x);
  return from_input("log2", floating(kernels::log2, x), x, [](Context& k, const Tensor& g) -> Grads {
    return {div(g, mul(k.saved(0), std::numbers::ln2))};
  });
}

Tensor log10(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return log10(v); }, x);
  return from_input("log10", floating(kernels::log10, x), x, [](Context& k, const Tensor& g) -> Grads {
    return {div(g, mul(k.saved(0), std::numbers::ln10))};
  });
}

Tensor log1p(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return log1p(v); }, x);
  return from_input("log1p", floating(kernels::log1p, x), x,
                    [](Context& k, const Tensor& g) -> Grads { return {div(g, add(k.saved(0), 1))}; });
}

Tensor sqrt(const Tensor& x) {
  return from_output("sqrt", floating(kernels::sqrt, x), x,
                     [](Context& k, const Tensor& g) -> Grads { return {div(g, mul(k.saved(0), 2))}; });
}

Tensor rsqrt(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return rsqrt(v); }, x);
  return from_output("rsqrt", floating(kernels::rsqrt, x), x, [](Context& k, const Tensor& g) -> Grads {
    const Tensor y = k.saved(0);
    return {mul(mul(g, -0.5), mul(y, square(y)))};
  });
}

Tensor square(const Tensor& x) {
  refuse_bool("square", x.dtype(), "x itself");
  return from_input("square", unary(kernels::square, x, x.dtype()), x,
                    [](Context& k, const Tensor& g) -> Grads { return {mul(mul(g, 2), k.saved(0))}; });
}

Tensor reciprocal(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return reciprocal(v); }, x);
  return from_output("reciprocal", floating(kernels::reciprocal, x), x,
                     [](Context& k, const Tensor& g) -> Grads { return {neg(mul(g, square(k.saved(0))))}; });
}

Tensor sin(const Tensor& x) {
  return from_input("sin", floating(kernels::sin, x), x,
                    [](Context& k, const Tensor& g) -> Grads { return {mul(g, cos(k.saved(0)))}; });
}

Tensor cos(const Tensor& x) {
  return from_input("cos", floating(kernels::cos, x), x,
                    [](Context& k, const Tensor& g) -> Grads { return {neg(mul(g, sin(k.saved(0))))}; });
}

Tensor tan(const Tensor& x) {
  if (autocast_enabled()) [[unlikely]]
    return in_single([](const Tensor& v) { return tan(v); }, x);
  return from_output("tan", floating(kernels::tan, x), x,
                     [](Context& k, const Tensor& g) -> Grads { return {mul(g, add(square(k.saved(0)), 1))}; });
}

Tensor erf(const Tensor& x) {
  return from_input("erf", floating(kernels::erf, x), x, [](Context& k, const Tensor& g) -> Grads {
    return {mul(mul(g, 2.0 * std::numbers::inv_sqrtpi), exp(neg(square(k.saved(0)))))};
  });
}

Tensor floor(const Tensor& x) { return rounding(kernels::floor, x); }
Tensor ceil(const Tensor& x) { return rounding(kernels::ceil, x); }
Tensor round(const Tensor& x) { return rounding(kernels::round, x); }
Tensor trunc(const Tensor& x) { return rounding(kernels::trunc, x); }

}  // namespace levin
