// Elementwise operations and activations. Those that ONNX 1.12 (opset 17) lacks are composed of its operators.

#include "lowering.h"

#include <levin/autograd/ops/elementwise.h>

#include <cmath>
#include <numbers>
#include <string>

namespace levin::interop::onnx {

namespace export_elementwise {
namespace {

using L = Lowering;

/// The input in the type of the result.
std::string x_of(L& l) { return l.in_as(0, l.result().dtype); }

void unary(L& l, const char* op) { l.set(l.add(op, {x_of(l)})); }

#define LEVIN_EXPORT_UNARY(name, op)   \
  {                                    \
#name, [](L & l) { unary(l, op); } \
  }

std::string number(L& l, double v) { return l.number(v, l.result().dtype); }

/// The operands of a step of two tensors, or of a tensor and a number, in the type in which it computes.
struct Operands {
  explicit Operands(L& l) : type(static_cast<DType>(l.integer("compute"))), factor(l.real("p0")) {
    a = l.in_as(0, type);
    if (l.step().inputs.size() > 1) {
      b = l.in_as(1, type);
    } else {
      b = l.scalar("value", type);
      if (l.integer("swapped") != 0) std::swap(a, b);
    }
  }
  DType type;
  double factor;
  std::string a, b;
};

/// Bool has no arithmetic in ONNX.
DType arithmetic_type(DType t) { return t == kBool ? kInt32 : t; }

void binary(L& l, const char* op) {
  const Operands o(l);
  l.set(l.binary(op, o.a, o.b));
}

void add(L& l) {
  Operands o(l);
  if (o.type == kBool) return l.set(l.binary("Or", o.a, o.b));
  if (o.factor == -1.0) return l.set(l.binary("Sub", o.a, o.b));
  if (o.factor != 1.0) o.b = l.binary("Mul", o.b, l.number(o.factor, o.type));
  l.set(l.binary("Add", o.a, o.b));
}

void mul(L& l) {
  const Operands o(l);
  l.set(l.binary(o.type == kBool ? "And" : "Mul", o.a, o.b));
}

/// The floor of the quotient. ONNX's Div of integers rounds towards zero, but its Mod has the divisor's sign.
void floor_divide(L& l) {
  const Operands o(l);
  if (is_floating(o.type)) return l.set(l.add("Floor", {l.binary("Div", o.a, o.b)}));
  l.set(l.binary("Div", l.binary("Sub", o.a, l.binary("Mod", o.a, o.b)), o.b));
}

void remainder(L& l) {
  const Operands o(l);
  if (!is_floating(o.type)) return l.set(l.binary("Mod", o.a, o.b));
  l.set(l.binary("Sub", o.a, l.binary("Mul", l.add("Floor", {l.binary("Div", o.a, o.b)}), o.b)));
}

template <bool greater>
void extremum(L& l) {
  const Operands o(l);
  l.set(l.binary(greater ? "Max" : "Min", o.a, o.b));
}

/// Comparisons of bool are those of 0 and 1.
void compare(L& l, const char* op, bool negated = false) {
  Operands o(l);
  if (o.type == kBool && std::string_view(op) != "Equal")
    o.a = l.cast(o.a, arithmetic_type(o.type)), o.b = l.cast(o.b, arithmetic_type(o.type));
  const std::string y = l.binary(op, o.a, o.b);
  l.set(negated ? l.add("Not", {y}) : y);
}

void logical(L& l, const char* op) { l.set(l.binary(op, l.in_as(0, kBool), l.in_as(1, kBool))); }

/// Bits of bool; those of integers have an operator from opset 18 on.
void bitwise(L& l, const char* of_bool, const char* of_integers) {
  const Operands o(l);
  if (o.type != kBool && l.opset() < 18) l.refuse("bits of integers need .opset = 18");
  l.set(l.binary(o.type == kBool ? of_bool : of_integers, o.a, o.b));
}

void where(L& l) {
  const DType t = l.result().dtype;
  const auto choice = [&](std::size_t i, const char* name) { return l.has(i) ? l.in_as(i, t) : l.scalar(name, t); };
  l.set(l.add("Where", {l.in(0), choice(1, "a"), choice(2, "b")}));
}

void clamp(L& l) {
  const double low = l.real("p0"), high = l.real("p1");
  const auto bound = [&](double v) { return std::isinf(v) ? std::string() : number(l, v); };
  l.set(l.add("Clip", {x_of(l), bound(low), bound(high)}));
}

/// Rounds towards zero.
void trunc(L& l) {
  const std::string x = x_of(l);
  l.set(l.add("Where", {l.binary("Less", x, number(l, 0)), l.add("Ceil", {x}), l.add("Floor", {x})}));
}

/// Attributes are float32. True where an importer that reads the shortest decimal gets this number.
bool is_exact_attribute(L& l, double v) {
  return l.result().dtype != kFloat64 || decimal_of(static_cast<float>(v)) == v;
}

void leaky_relu(L& l) {
  const double slope = l.real("p0");
  if (is_exact_attribute(l, slope)) return l.set(l.add("LeakyRelu", {x_of(l)}, {{"alpha", slope}}));
  l.set(l.add("PRelu", {x_of(l), number(l, slope)}));
}

void hardsigmoid(L& l) {
  const std::string x = x_of(l);
  if (l.result().dtype != kFloat64) return l.set(l.add("HardSigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
  const std::string y = l.binary("Add", l.binary("Div", x, number(l, 6)), number(l, 0.5));
  l.set(l.add("Clip", {y, number(l, 0), number(l, 1)}));
}

void gelu(L& l) {  // x (1 + erf(x / sqrt(2))) / 2
  const std::string x = x_of(l);
  if (l.opset() >= 20) return l.set(l.add("Gelu", {x}));
  const std::string e = l.add("Erf", {l.binary("Div", x, number(l, std::numbers::sqrt2))});
  l.set(l.binary("Mul", l.binary("Mul", x, l.binary("Add", e, number(l, 1))), number(l, 0.5)));
}

void gelu_tanh(L& l) {  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  const std::string x = x_of(l);
  if (l.opset() >= 20) return l.set(l.add("Gelu", {x}, {{"approximate", "tanh"}}));
  const std::string cubic = l.binary("Mul", l.binary("Mul", l.binary("Mul", x, x), x), number(l, 0.044715));
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const std::string t = l.add("Tanh", {l.binary("Mul", l.binary("Add", x, cubic), number(l, scale))});
  l.set(l.binary("Mul", l.binary("Mul", x, l.binary("Add", t, number(l, 1))), number(l, 0.5)));
}

void softplus(L& l) {
  const double beta = l.real("p0");
  const std::string x = x_of(l);
  if (beta == 1.0) return l.set(l.add("Softplus", {x}));
  l.set(l.binary("Div", l.add("Softplus", {l.binary("Mul", x, number(l, beta))}), number(l, beta)));
}

void copysign(L& l) {
  const Operands o(l);
  const std::string magnitude = l.add("Abs", {o.a}), negative = l.binary("Less", o.b, l.number(0, o.type));
  l.set(l.add("Where", {negative, l.add("Neg", {magnitude}), magnitude}));
}

void prelu(L& l) {
  const Operands o(l);
  l.set(l.add("PRelu", {o.a, o.b}));
}

std::string computed(L& l, std::size_t i) { return l.in_as(i, static_cast<DType>(l.integer("compute"))); }

template <bool quotient>
void addc(L& l) {  // a + p0 b c, a + p0 b / c
  std::string term = l.binary(quotient ? "Div" : "Mul", computed(l, 1), computed(l, 2));
  if (l.real("p0") != 1.0) term = l.binary("Mul", term, l.number(l.real("p0"), l.result().dtype));
  l.set(l.binary("Add", computed(l, 0), term));
}

void lerp(L& l) {  // a + c (b - a)
  const std::string a = computed(l, 0), difference = l.binary("Sub", computed(l, 1), a);
  l.set(l.binary("Add", a, l.binary("Mul", computed(l, 2), difference)));
}

const ExportRow kRows[] = {
    LEVIN_EXPORT_UNARY(neg, "Neg"),
    LEVIN_EXPORT_UNARY(abs, "Abs"),
    LEVIN_EXPORT_UNARY(sign, "Sign"),
    LEVIN_EXPORT_UNARY(floor, "Floor"),
    LEVIN_EXPORT_UNARY(ceil, "Ceil"),
    LEVIN_EXPORT_UNARY(round, "Round"),
    LEVIN_EXPORT_UNARY(reciprocal, "Reciprocal"),
    LEVIN_EXPORT_UNARY(sqrt, "Sqrt"),
    LEVIN_EXPORT_UNARY(exp, "Exp"),
    LEVIN_EXPORT_UNARY(log, "Log"),
    LEVIN_EXPORT_UNARY(sin, "Sin"),
    LEVIN_EXPORT_UNARY(cos, "Cos"),
    LEVIN_EXPORT_UNARY(tan, "Tan"),
    LEVIN_EXPORT_UNARY(asin, "Asin"),
    LEVIN_EXPORT_UNARY(acos, "Acos"),
    LEVIN_EXPORT_UNARY(atan, "Atan"),
    LEVIN_EXPORT_UNARY(sinh, "Sinh"),
    LEVIN_EXPORT_UNARY(cosh, "Cosh"),
    LEVIN_EXPORT_UNARY(asinh, "Asinh"),
    LEVIN_EXPORT_UNARY(acosh, "Acosh"),
    LEVIN_EXPORT_UNARY(atanh, "Atanh"),
    LEVIN_EXPORT_UNARY(erf, "Erf"),
    LEVIN_EXPORT_UNARY(sigmoid, "Sigmoid"),
    LEVIN_EXPORT_UNARY(tanh, "Tanh"),
    LEVIN_EXPORT_UNARY(hardswish, "HardSwish"),
    LEVIN_EXPORT_UNARY(softsign, "Softsign"),
    {"square",
     [](L& l) {
       const std::string x = x_of(l);
       l.set(l.binary("Mul", x, x));
     }},
    {"trunc", trunc},
    {"relu",
     [](L& l) {  // onnxruntime has none of integers
       const std::string x = x_of(l);
       l.set(is_floating(l.result().dtype) ? l.add("Relu", {x}) : l.binary("Max", x, number(l, 0)));
     }},
    {"rsqrt", [](L& l) { l.set(l.add("Reciprocal", {l.add("Sqrt", {x_of(l)})})); }},
    {"expm1", [](L& l) { l.set(l.binary("Sub", l.add("Exp", {x_of(l)}), number(l, 1))); }},
    {"log2", [](L& l) { l.set(l.binary("Div", l.add("Log", {x_of(l)}), number(l, std::numbers::ln2))); }},
    {"log10", [](L& l) { l.set(l.binary("Div", l.add("Log", {x_of(l)}), number(l, std::numbers::ln10))); }},
    {"log1p", [](L& l) { l.set(l.add("Log", {l.binary("Add", x_of(l), number(l, 1))})); }},
    {"exp2", [](L& l) { l.set(l.binary("Pow", number(l, 2), x_of(l))); }},
    {"erfc", [](L& l) { l.set(l.binary("Sub", number(l, 1), l.add("Erf", {x_of(l)}))); }},
    {"clamp", clamp},
    {"leaky_relu", leaky_relu},
    {"elu",
     [](L& l) {
       l.set(l.add("Elu", {x_of(l)}, {{"alpha", l.real("p0")}}));
     }},
    {"selu",
     [](L& l) {
       l.set(l.add("Selu", {x_of(l)}, {{"alpha", 1.6732632423543772}, {"gamma", 1.0507009873554805}}));
     }},
    {"hardsigmoid", hardsigmoid},
    {"mish",
     [](L& l) {
       const std::string x = x_of(l);
       l.set(l.binary("Mul", x, l.add("Tanh", {l.add("Softplus", {x})})));
     }},
    {"gelu", gelu},
    {"gelu_tanh", gelu_tanh},
    {"softplus", softplus},
    {"silu",
     [](L& l) {
       const std::string x = x_of(l);
       l.set(l.binary("Mul", x, l.add("Sigmoid", {x})));
     }},
    {"logsigmoid", [](L& l) { l.set(l.add("Neg", {l.add("Softplus", {l.add("Neg", {x_of(l)})})})); }},
    {"add", add},
    {"mul", mul},
    {"div", [](L& l) { binary(l, "Div"); }},
    {"pow", [](L& l) { binary(l, "Pow"); }},
    {"maximum", extremum<true>},
    {"minimum", extremum<false>},
    {"floor_divide", floor_divide},
    {"remainder", remainder},
    {"copysign", copysign},
    {"prelu", prelu},
    {"hypot",
     [](L& l) {
       const Operands o(l);
       l.set(l.add("Sqrt", {l.binary("Add", l.binary("Mul", o.a, o.a), l.binary("Mul", o.b, o.b))}));
     }},
    {"bitwise_and", [](L& l) { bitwise(l, "And", "BitwiseAnd"); }},
    {"bitwise_or", [](L& l) { bitwise(l, "Or", "BitwiseOr"); }},
    {"bitwise_xor", [](L& l) { bitwise(l, "Xor", "BitwiseXor"); }},
    {"eq", [](L& l) { compare(l, "Equal"); }},
    {"ne", [](L& l) { compare(l, "Equal", true); }},
    {"lt", [](L& l) { compare(l, "Less"); }},
    {"le", [](L& l) { compare(l, "LessOrEqual"); }},
    {"gt", [](L& l) { compare(l, "Greater"); }},
    {"ge", [](L& l) { compare(l, "GreaterOrEqual"); }},
    {"logical_and", [](L& l) { logical(l, "And"); }},
    {"logical_or", [](L& l) { logical(l, "Or"); }},
    {"logical_xor", [](L& l) { logical(l, "Xor"); }},
    {"logical_not", [](L& l) { l.set(l.add("Not", {l.in_as(0, kBool)})); }},
    {"isnan", [](L& l) { l.set(l.add("IsNaN", {l.in()})); }},
    {"isinf", [](L& l) { l.set(l.add("IsInf", {l.in()})); }},
    {"isfinite",
     [](L& l) { l.set(l.add("Not", {l.binary("Or", l.add("IsNaN", {l.in()}), l.add("IsInf", {l.in()}))})); }},
    {"where", where},
    {"lerp", lerp},
    {"addcmul", addc<false>},
    {"addcdiv", addc<true>},
    {"to", [](L& l) { l.set(l.cast(l.in(), l.result().dtype)); }},
    {"identity", [](L& l) { l.set(l.in()); }},
    {"copy_", [](L& l) { l.set(x_of(l)); }},
};

}  // namespace
}  // namespace export_elementwise

std::span<const ExportRow> elementwise_export_rows() { return export_elementwise::kRows; }

}  // namespace levin::interop::onnx
