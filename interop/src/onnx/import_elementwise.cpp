// Elementwise operators of ONNX.

#include "interpreter.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>

#include <cmath>

namespace levin::interop::onnx {

namespace import_elementwise {
namespace {

#define LEVIN_IMPORT_UNARY(op, function)                              \
  {                                                                   \
#op, 1, [](const Call& c) -> Tensors { return {function(c[0])}; } \
  }
#define LEVIN_IMPORT_BINARY(op, function)                                   \
  {                                                                         \
#op, 7, [](const Call& c) -> Tensors { return {function(c[0], c[1])}; } \
  }

/// Integers are divided towards zero.
Tensor quotient(const Tensor& a, const Tensor& b) {
  return a.is_floating() ? div(a, b) : div(a, b, RoundingMode::trunc);
}

Tensor modulo(const Call& c) { return c.integer("fmod", 0) != 0 ? fmod(c[0], c[1]) : remainder(c[0], c[1]); }

Tensor power(const Tensor& a, const Tensor& b) {
  return a.is_floating() ? pow(a, to(b, a.dtype())) : to(pow(to(a, kFloat64), to(b, kFloat64)), a.dtype());
}

Tensor add_all(const Call& c) {
  Tensor sum = c[0];
  for (std::size_t i = 1; i < c.inputs(); ++i) sum = add(sum, c[i]);
  return sum;
}

template <Tensor (*f)(const Tensor&, const Tensor&)>
Tensors of_all(const Call& c) {
  Tensor y = c[0];
  for (std::size_t i = 1; i < c.inputs(); ++i) y = f(y, c[i]);
  return {y};
}

Tensors clip(const Call& c) {
  const Tensor x = c[0];
  std::optional<Scalar> low, high;
  if (c.opset() < 11) {
    if (c.find("min")) low = c.real("min", 0);
    if (c.find("max")) high = c.real("max", 0);
  } else {
    if (c.has(1)) low = c[1].item_scalar();
    if (c.has(2)) high = c[2].item_scalar();
  }
  return {low || high ? to(clamp(x, low, high), x.dtype()) : x};
}

Tensors cast(const Call& c) {
  const std::int64_t wanted = c.integer("to", 0);
  for (int i = 0; i < kRealDTypeCount; ++i)
    if (type_number(static_cast<DType>(i)) == wanted) return {to(c[0], static_cast<DType>(i))};
  c.refuse("the type number " + std::to_string(wanted) + " is not one of Levin's");
}

Tensors is_inf(const Call& c) {
  const bool positive = c.integer("detect_positive", 1) != 0, negative = c.integer("detect_negative", 1) != 0;
  const Tensor x = c[0];
  return {positive && negative ? isinf(x) : positive ? isposinf(x) : isneginf(x)};
}

Tensors hard_sigmoid(const Call& c) {
  return {clamp(add(mul(c[0], c.real("alpha", 0.2)), c.real("beta", 0.5)), 0.0, 1.0)};
}

Tensors shrink(const Call& c) {
  const double lambda = c.real("lambd", 0.5), bias = c.real("bias", 0);
  const Tensor x = c[0];
  return {where(lt(x, -lambda), add(x, bias), where(gt(x, lambda), sub(x, bias), 0))};
}

Tensors selu(const Call& c) {
  const double alpha = c.real("alpha", 1.6732632423543772), gamma = c.real("gamma", 1.0507009873554805);
  if (std::abs(alpha - 1.6732632423543772) < 1e-6 && std::abs(gamma - 1.0507009873554805) < 1e-6)
    return {levin::selu(c[0])};
  return {mul(elu(c[0], alpha), gamma)};
}

const ImportRow kRows[] = {
    LEVIN_IMPORT_BINARY(Add, add),
    LEVIN_IMPORT_BINARY(Sub, sub),
    LEVIN_IMPORT_BINARY(Mul, mul),
    LEVIN_IMPORT_BINARY(Div, quotient),
    LEVIN_IMPORT_BINARY(Pow, power),
    LEVIN_IMPORT_BINARY(Equal, eq),
    LEVIN_IMPORT_BINARY(Less, lt),
    LEVIN_IMPORT_BINARY(LessOrEqual, le),
    LEVIN_IMPORT_BINARY(Greater, gt),
    LEVIN_IMPORT_BINARY(GreaterOrEqual, ge),
    LEVIN_IMPORT_BINARY(And, logical_and),
    LEVIN_IMPORT_BINARY(Or, logical_or),
    LEVIN_IMPORT_BINARY(Xor, logical_xor),
    LEVIN_IMPORT_BINARY(BitwiseAnd, bitwise_and),
    LEVIN_IMPORT_BINARY(BitwiseOr, bitwise_or),
    LEVIN_IMPORT_BINARY(BitwiseXor, bitwise_xor),
    LEVIN_IMPORT_UNARY(BitwiseNot, bitwise_not),
    LEVIN_IMPORT_UNARY(Not, logical_not),
    LEVIN_IMPORT_UNARY(Neg, neg),
    LEVIN_IMPORT_UNARY(Abs, abs),
    LEVIN_IMPORT_UNARY(Sign, sign),
    LEVIN_IMPORT_UNARY(Floor, floor),
    LEVIN_IMPORT_UNARY(Ceil, ceil),
    LEVIN_IMPORT_UNARY(Round, round),
    LEVIN_IMPORT_UNARY(Reciprocal, reciprocal),
    LEVIN_IMPORT_UNARY(Sqrt, sqrt),
    LEVIN_IMPORT_UNARY(Exp, exp),
    LEVIN_IMPORT_UNARY(Log, log),
    LEVIN_IMPORT_UNARY(Sin, sin),
    LEVIN_IMPORT_UNARY(Cos, cos),
    LEVIN_IMPORT_UNARY(Tan, tan),
    LEVIN_IMPORT_UNARY(Asin, asin),
    LEVIN_IMPORT_UNARY(Acos, acos),
    LEVIN_IMPORT_UNARY(Atan, atan),
    LEVIN_IMPORT_UNARY(Sinh, sinh),
    LEVIN_IMPORT_UNARY(Cosh, cosh),
    LEVIN_IMPORT_UNARY(Asinh, asinh),
    LEVIN_IMPORT_UNARY(Acosh, acosh),
    LEVIN_IMPORT_UNARY(Atanh, atanh),
    LEVIN_IMPORT_UNARY(Erf, erf),
    LEVIN_IMPORT_UNARY(Relu, relu),
    LEVIN_IMPORT_UNARY(Sigmoid, sigmoid),
    LEVIN_IMPORT_UNARY(Tanh, tanh),
    LEVIN_IMPORT_UNARY(Mish, mish),
    LEVIN_IMPORT_UNARY(HardSwish, hardswish),
    LEVIN_IMPORT_UNARY(Softsign, softsign),
    LEVIN_IMPORT_UNARY(IsNaN, isnan),
    LEVIN_IMPORT_UNARY(Identity, Tensor),
    // Computed without softplus's threshold, beyond which it is the identity to within a rounding.
    {"Softplus", 1, [](const Call& c) -> Tensors { return {softplus(c[0])}; }},
    {"IsInf", 10, is_inf},
    {"Mod", 10, [](const Call& c) -> Tensors { return {modulo(c)}; }},
    {"Sum", 8, [](const Call& c) -> Tensors { return {add_all(c)}; }},
    {"Mean", 8, [](const Call& c) -> Tensors { return {div(add_all(c), static_cast<double>(c.inputs()))}; }},
    {"Max", 8, of_all<maximum>},
    {"Min", 8, of_all<minimum>},
    {"Clip", 6, clip},
    {"Cast", 6, cast},
    {"CastLike", 15, [](const Call& c) -> Tensors { return {to(c[0], c[1].dtype())}; }},
    {"Where", 9, [](const Call& c) -> Tensors { return {where(c[0], c[1], c[2])}; }},
    {"LeakyRelu", 6, [](const Call& c) -> Tensors { return {leaky_relu(c[0], c.real("alpha", 0.01))}; }},
    {"Elu", 6, [](const Call& c) -> Tensors { return {elu(c[0], c.real("alpha", 1))}; }},
    {"Celu", 12, [](const Call& c) -> Tensors { return {celu(c[0], c.real("alpha", 1))}; }},
    {"Selu", 6, selu},
    {"ThresholdedRelu", 10, [](const Call& c) -> Tensors { return {threshold(c[0], c.real("alpha", 1), 0)}; }},
    {"HardSigmoid", 6, hard_sigmoid},
    {"Shrink", 9, shrink},
    {"Gelu", 20,
     [](const Call& c) -> Tensors {
       return {gelu(c[0], c.text("approximate", "none") == "tanh" ? Approximate::tanh : Approximate::none)};
     }},
    {"PRelu", 7,
     [](const Call& c) -> Tensors {
       const Tensor x = c[0];
       return {where(gt(x, 0), x, mul(x, c[1]))};
     }},
};

}  // namespace
}  // namespace import_elementwise

std::span<const ImportRow> elementwise_import_rows() { return import_elementwise::kRows; }

}  // namespace levin::interop::onnx
