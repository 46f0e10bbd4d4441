#include "cases/cases.h"
#include "cases/host_device.h"
#include "cases/pointwise.h"

#include <levin/autograd/ops/creation.h>

#include <cmath>

namespace levin::test {

namespace {

double floor_mod(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
/// Like Python's //: the floor of the exact quotient, and NaN for an infinite dividend.
double floor_quotient(double a, double b) {
  if (b == 0) return a / b;
  const double m = std::fmod(a, b), quotient = (a - m) / b - (m != 0 && (m < 0) != (b < 0) ? 1 : 0);
  return std::isfinite(quotient) ? std::nearbyint(quotient) : quotient;
}
double half_even(double x) { return std::nearbyint(x); }
/// NaN of either operand is kept.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double sign_of(double x) { return (x > 0) - (x < 0); }

std::vector<OpCase> functions() {
  const Values wide = uniform(-4, 4), positive = uniform(0.1, 5), not_zero = away_from(uniform(-3, 3), {0}, 0.2);
  const Values between = away_from(uniform(-3, 3), {-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3}, 0.1);
  std::vector<OpCase> list = {
      with_types(unary_case(
                     "neg", neg, [](double x) { return -x; }, wide, 0),
                 {kNumericTypes.begin(), kNumericTypes.end() - 1}),
      with_types(unary_case("abs", abs, std::abs, away_from(wide, {0}), 0), kNumericTypes),
      with_types(as_step(unary_case("sign", sign, sign_of, away_from(wide, {0}), 0)), kNumericTypes),
      with_types(unary_case(
                     "square", square, [](double x) { return x * x; }, wide, 1),
                 kNumericTypes),
      with_types(unary_case("exp", exp, std::exp, wide), kAllTypes, Output::floating),
      with_types(unary_case("expm1", expm1, std::expm1, wide), kAllTypes, Output::floating),
      with_types(unary_case("log", log, std::log, positive), kAllTypes, Output::floating),
      unary_case("log2", log2, std::log2, positive),
      unary_case("log10", log10, std::log10, positive),
      with_types(unary_case("log1p", log1p, std::log1p, uniform(-0.8, 5)), kAllTypes, Output::floating),
      with_types(unary_case("sqrt", sqrt, std::sqrt, positive), kAllTypes, Output::floating),
      unary_case(
          "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, positive),
      with_types(unary_case(
                     "reciprocal", reciprocal, [](double x) { return 1 / x; }, not_zero),
                 kNumericTypes, Output::floating),
      with_types(unary_case("sin", sin, std::sin, wide), kNumericTypes, Output::floating),
      with_types(unary_case("cos", cos, std::cos, wide), kNumericTypes, Output::floating),
      unary_case("tan", tan, std::tan, uniform(-1.3, 1.3)),
      with_types(unary_case("erf", erf, std::erf, wide), kNumericTypes, Output::floating),
      with_types(unary_case("erfc", erfc, std::erfc, wide), kNumericTypes, Output::floating),
      with_types(unary_case("exp2", exp2, std::exp2, wide), kNumericTypes, Output::floating),
      unary_case("asin", asin, std::asin, uniform(-0.9, 0.9)),
      unary_case("acos", acos, std::acos, uniform(-0.9, 0.9)),
      with_types(unary_case("atan", atan, std::atan, wide), kNumericTypes, Output::floating),
      with_types(unary_case("sinh", sinh, std::sinh, wide), kNumericTypes, Output::floating),
      with_types(unary_case("cosh", cosh, std::cosh, alive(wide, 1.5)), kNumericTypes, Output::floating),
      with_types(unary_case("asinh", asinh, std::asinh, wide), kNumericTypes, Output::floating),
      unary_case("acosh", acosh, std::acosh, uniform(1.2, 4)),
      unary_case("atanh", atanh, std::atanh, uniform(-0.9, 0.9)),
      with_types(as_step(unary_case("floor", floor, std::floor, between, 0)), kNumericTypes),
      with_types(as_step(unary_case("ceil", ceil, std::ceil, between, 0)), kNumericTypes),
      with_types(as_step(unary_case("round", round, half_even, between, 0)), kNumericTypes),
      with_types(as_step(unary_case("trunc", trunc, std::trunc, between, 0)), kNumericTypes)};
  list[0].errors = {{"[neg] bool is not accepted", [] { neg(ones({2}, {.dtype = kBool})); }}};
  return list;
}

std::vector<OpCase> arithmetic() {
  const Values small = integers(-5, 6), wide = uniform(-3, 3), not_zero = away_from(uniform(-3, 3), {0}, 1.0);
  const Values spread = distinct(0.5);
  std::vector<OpCase> list = {
      with_types(binary_case(
                     "add", [](const Tensor& a, const Tensor& b) { return add(a, b); },
                     [](double a, double b) { return a + b; }, wide, wide),
                 {kAllTypes.begin(), kAllTypes.end() - 2}),
      with_torch(with_types(binary_case(
                                "add_alpha", [](const Tensor& a, const Tensor& b) { return add(a, b, 3); },
                                [](double a, double b) { return std::fma(3, b, a); }, wide, wide),
                            {DType::f64, DType::f32, DType::i64, DType::i32}),
                 "torch.add(x0, x1, alpha=3)"),
      with_types(binary_case(
                     "sub", [](const Tensor& a, const Tensor& b) { return sub(a, b); },
                     [](double a, double b) { return a - b; }, wide, wide),
                 {kNumericTypes.begin(), kNumericTypes.end() - 1}),
      binary_case(
          "mul", [](const Tensor& a, const Tensor& b) { return mul(a, b); }, [](double a, double b) { return a * b; },
          wide, wide),
      with_types(binary_case(
                     "div", [](const Tensor& a, const Tensor& b) { return div(a, b); },
                     [](double a, double b) { return a / b; }, wide, not_zero),
                 kNumericTypes, Output::floating),
      binary_case(
          "remainder", [](const Tensor& a, const Tensor& b) { return remainder(a, b); }, floor_mod,
          [](int64_t, int64_t, Generator& g) { return 5.3 + 0.4 * g.uniform(); },
          [](int64_t, int64_t, Generator& g) { return g.uniform() < 0.5 ? -2.0 : 2.0; }),
      with_types(binary_case(
                     "pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
                     [](double a, double b) { return std::pow(a, b); }, uniform(0.3, 2.5), uniform(-2, 3), 4),
                 kFloatTypes),
      binary_case(
          "maximum", maximum, larger, spread, shifted(spread, 0.25)),
      binary_case(
          "minimum", minimum, smaller, spread, shifted(spread, 0.25)),
      with_types(binary_case(
                     "atan2", atan2, [](double a, double b) { return std::atan2(a, b); }, not_zero, not_zero, 4),
                 kFloatTypes)};
  list.push_back(with_types(
      binary_case(
          "hypot", hypot, [](double a, double b) { return std::hypot(a, b); }, not_zero, not_zero, 4),
      kFloatTypes));
  list.push_back(with_types(
      binary_case(
          "copysign", copysign, [](double a, double b) { return std::copysign(a, b); }, not_zero, not_zero, 0),
      kFloatTypes));
  list.back().draw = [draw = list.back().draw](Draw& d) {
    Sample s = draw(d);
    s.inputs[1].sign = true;
    return s;
  };
  list[2].tolerance = list[0].tolerance = {.ulps = 1};
  list[1].tolerance = {.ulps = 1, .scale = 6};
  for (OpCase& c : list)
    if (c.name == "remainder" || c.name == "atan2" || c.name == "div" || c.name == "pow" || c.name == "hypot")
      c.grad_tolerance = {.ulps = 16, .scale = 8};
  list[0].errors = {{"[add] shapes (2, 3) and (4,) do not broadcast", [] { add(ones({2, 3}), ones({4})); }},
                    {"is undefined", [] { add(ones({2}), Tensor()); }}};
  list[2].errors = {
      {"[sub] bool is not accepted", [] { sub(ones({2}, {.dtype = kBool}), ones({2}, {.dtype = kBool})); }}};

  OpCase floor_division = binary_case(
      "floor_divide", [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); },
      floor_quotient, uniform(-9, 9), not_zero);
  floor_division.differentiable = false;  // its backward refuses
  floor_division.errors = {{"divided by zero", [] { floor_divide(tensor<int64_t>({1}), tensor<int64_t>({0})); }},
                           {"[floor_divide] it has no gradient", [] {
                              floor_divide(ones({2}).requires_grad_(), ones({2})).sum().backward();
                            }}};
  list.push_back(floor_division);

  OpCase powers = with_types(binary_case("pow_integers", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
                                         [](double a, double b) { return std::pow(a, b); }, small, integers(0, 4)),
                             {DType::i64, DType::i32, DType::i16, DType::i8});
  powers.differentiable = false;
  powers.torch = "torch.pow(x0, x1)";
  list.push_back(powers);
  return list;
}

/// Operations of a tensor with a number, in place and out of place.
std::vector<OpCase> with_numbers() {
  const Values wide = uniform(-3, 3), not_zero = away_from(uniform(-3, 3), {0}, 0.5), positive = uniform(0.2, 3);
  const auto make = [](const char* name, const char* torch, const Values& values, Unary f,
                       double (*reference)(double)) {
    OpCase c = with_torch(unary_case(name, f, reference, values, 2), torch);
    c.tolerance = {.ulps = 2, .scale = 1};
    return c;
  };
  return {
      make(
          "add_number", "x0 + 2.5", wide, [](const Tensor& x) { return x + 2.5; }, [](double x) { return x + 2.5; }),
      make(
          "sub_number", "x0 - 2.5", wide, [](const Tensor& x) { return x - 2.5; }, [](double x) { return x - 2.5; }),
      make(
          "rsub", "2.5 - x0", wide, [](const Tensor& x) { return 2.5 - x; }, [](double x) { return 2.5 - x; }),
      make(
          "mul_number", "x0 * 1.5", wide, [](const Tensor& x) { return x * 1.5; }, [](double x) { return x * 1.5; }),
      make(
          "div_number", "x0 / 1.7", wide, [](const Tensor& x) { return x / 1.7; }, [](double x) { return x / 1.7; }),
      make(
          "rdiv", "2 / x0", not_zero, [](const Tensor& x) { return 2 / x; }, [](double x) { return 2 / x; }),
      make(
          "remainder_number", "torch.remainder(x0, 2)", uniform(0.1, 1.9),
          [](const Tensor& x) { return remainder(x, 2); }, [](double x) { return floor_mod(x, 2); }),
      make(
          "pow_2", "x0 ** 2", wide, [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }),
      make(
          "pow_3", "x0 ** 3", wide, [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }),
      make(
          "pow_half", "x0 ** 0.5", positive, [](const Tensor& x) { return pow(x, 0.5); },
          [](double x) { return std::sqrt(x); }),
      make(
          "pow_minus_one", "x0 ** -1", not_zero, [](const Tensor& x) { return pow(x, -1); },
          [](double x) { return 1 / x; }),
      make(
          "clamp", "torch.clamp(x0, -1, 1.5)", alive(away_from(wide, {-1, 1.5}), 0.5),
          [](const Tensor& x) { return clamp(x, -1.0, 1.5); },
          [](double x) { return std::min(std::max(x, -1.0), 1.5); }),
      make(
          "clamp_min", "torch.clamp(x0, min=0.5)", alive(away_from(wide, {0.5}), 0.75),
          [](const Tensor& x) { return clamp(x, 0.5); }, [](double x) { return std::max(x, 0.5); })};
}

std::vector<OpCase> comparisons() {
  const Values ties = integers(-2, 3), truth = integers(0, 2);
  const auto make = [&](const char* name, Binary f, double (*reference)(double, double), const Values& v) {
    return as_test(binary_case(name, f, reference, v, v));
  };
  std::vector<OpCase> list = {
      make("eq", eq, [](double a, double b) { return double(a == b); }, ties),
      make("ne", ne, [](double a, double b) { return double(a != b); }, ties),
      make("lt", lt, [](double a, double b) { return double(a < b); }, ties),
      make("le", le, [](double a, double b) { return double(a <= b); }, ties),
      make("gt", gt, [](double a, double b) { return double(a > b); }, ties),
      make("ge", ge, [](double a, double b) { return double(a >= b); }, ties),
      make("logical_and", logical_and, [](double a, double b) { return double(a != 0 && b != 0); }, truth),
      make("logical_or", logical_or, [](double a, double b) { return double(a != 0 || b != 0); }, truth),
      make("logical_xor", logical_xor, [](double a, double b) { return double((a != 0) != (b != 0)); }, truth)};
  const Values special = cycle({0.0, 1.5, INFINITY, -INFINITY, NAN, -2.0});
  const auto bits = [&](const char* name, Binary f, double (*reference)(double, double)) {
    OpCase c = with_types(binary_case(name, f, reference, integers(0, 128), integers(0, 128)),
                          {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8, DType::boolean});
    c.differentiable = false;
    c.errors = {{"float32 is not accepted, only bool and integers", [f] { f(ones({2}), ones({2})); }}};
    list.push_back(c);
  };
  bits("bitwise_and", bitwise_and, [](double a, double b) { return double(int64_t(a) & int64_t(b)); });
  bits("bitwise_or", bitwise_or, [](double a, double b) { return double(int64_t(a) | int64_t(b)); });
  bits("bitwise_xor", bitwise_xor, [](double a, double b) { return double(int64_t(a) ^ int64_t(b)); });
  list.push_back(as_test(unary_case("logical_not", logical_not, [](double x) { return double(x == 0); }, truth)));
  for (OpCase c : {unary_case("isnan", isnan, [](double x) { return double(std::isnan(x)); }, special),
                   unary_case("isinf", isinf, [](double x) { return double(std::isinf(x)); }, special),
                   unary_case("isfinite", isfinite, [](double x) { return double(std::isfinite(x)); }, special)}) {
    c = as_test(c);
    c.dtypes = kFloatTypes;
    list.push_back(c);
  }
  return list;
}

/// Copies to another device and back; the other device is the host's memory under another name.
OpCase to_device() {
  OpCase c = unary_case("to_device", nullptr, [](double x) { return x; }, uniform(-3, 3), 0);
  c.op = [](const Tensors& x) -> Tensors { return {to(to(x[0], other_host()), x[0].device())}; };
  c.dtypes = kAllTypes;
  c.torch.clear();
  c.errors = {{"custom1 is not in this build", [] { to(ones({2}), Device{DeviceType::custom1, 0}); }},
              {"[add] the operands are on", [] { add(ones({2}), to(ones({2}), other_host())); }},
              {"there is no kernel for custom0", [] { neg(to(ones({2}), other_host())); }}};
  return c;
}

/// Samples of three inputs, the first of which is a condition if `dtype` says so.
std::vector<Sample> ternary_samples(const Values& a, const Values& b, const Values& c,
                                    std::optional<DType> dtype = {}) {
  std::vector<Sample> list;
  const std::vector<std::array<Shape, 3>> shapes = {{{{}, {}, {}}},       {{{0}, {0}, {0}}},
                                                    {{{33}, {33}, {33}}}, {{{2, 3}, {3}, {2, 1}}},
                                                    {{{4}, {3, 4}, {}}},  {{{7, 1}, {7, 5}, {1, 5}}}};
  for (const auto& s : shapes)
    list.push_back({.inputs = {{.sizes = s[0], .values = a, .dtype = dtype, .differentiable = !dtype},
                               {.sizes = s[1], .values = b}, {.sizes = s[2], .values = c}}});
  return list;
}

std::vector<OpCase> of_three() {
  const Values wide = uniform(-2, 2), not_zero = away_from(uniform(-3, 3), {0}, 1.0);
  const auto make = [](const char* name, const char* torch, std::vector<Sample> samples, auto f,
                       double (*reference)(double, double, double)) {
    OpCase c;
    c.name = name;
    c.op = [f](const Tensors& x) -> Tensors { return {f(x[0], x[1], x[2])}; };
    c.reference = pointwise(std::function<double(double, double, double)>(reference));
    c.samples = std::move(samples);
    c.draw = [specs = c.samples[0].inputs](Draw& d) {
      Sample s{.inputs = specs};
      const Shape whole = d.shape();
      for (InputSpec& i : s.inputs) i.sizes = d.chance(50) ? whole : d.broadcasting_to(whole);
      return s;
    };
    c.large = {c.samples[0]};
    for (InputSpec& i : c.large[0].inputs) i.sizes = {kLargeSize};
    c.bench = c.large;
    for (InputSpec& i : c.bench[0].inputs) i.sizes = {kBenchSize};
    c.dtypes = kFloatTypes;
    c.tolerance = {.ulps = 2, .scale = 4};
    c.grad_tolerance = {.ulps = 16, .scale = 8};
    c.torch = torch;
    return c;
  };
  const auto pick = [](const Tensor& c, const Tensor& a, const Tensor& b) { return where(c, a, b); };
  std::vector<OpCase> list = {
      make("where", "torch.where(x0, x1, x2)", ternary_samples(integers(0, 2), wide, wide, kBool), pick,
           [](double c, double a, double b) { return c != 0 ? a : b; }),
      make("lerp", "torch.lerp(x0, x1, x2)", ternary_samples(wide, wide, uniform(-0.5, 1.5)),
           [](const Tensor& a, const Tensor& b, const Tensor& w) { return lerp(a, b, w); },
           [](double a, double b, double w) { return std::abs(w) < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w); }),
      make("addcmul", "torch.addcmul(x0, x1, x2, value=0.5)", ternary_samples(wide, wide, wide),
           [](const Tensor& a, const Tensor& b, const Tensor& c) { return addcmul(a, b, c, 0.5); },
           [](double a, double b, double c) { return a + 0.5 * b * c; }),
      make("addcdiv", "torch.addcdiv(x0, x1, x2, value=0.5)", ternary_samples(wide, wide, not_zero),
           [](const Tensor& a, const Tensor& b, const Tensor& c) { return addcdiv(a, b, c, 0.5); },
           [](double a, double b, double c) { return a + 0.5 * b / c; })};
  list[0].dtypes = kAllTypes;
  list[0].errors = {{"[where] the condition is float32, not bool", [] { where(ones({2}), ones({2}), ones({2})); }}};
  return list;
}

std::vector<OpCase> masks() {
  OpCase c;
  c.name = "masked_fill";
  c.op = [](const Tensors& x) -> Tensors { return {masked_fill(x[0], x[1], -3)}; };
  c.reference = pointwise([](double x, double m) { return m != 0 ? -3 : x; });
  for (const auto& [x, m] :
       std::vector<std::pair<Shape, Shape>>{{{}, {}}, {{5}, {5}}, {{2, 3}, {3}}, {{3}, {2, 3}}, {{4, 0}, {4, 1}}})
    c.samples.push_back({.inputs = {{.sizes = x}, bool_input(m)}});
  c.draw = [](Draw& d) -> Sample {
    const Shape whole = d.shape(), part = d.broadcasting_to(whole);
    const bool swapped = d.chance(30);
    return {.inputs = {{.sizes = swapped ? part : whole}, bool_input(swapped ? whole : part)}};
  };
  for (Sample& s : c.samples) s.inputs[1].values = alive(s.inputs[1].values, 0);
  c.large = {{.inputs = {{.sizes = {kLargeSize}}, bool_input({kLargeSize})}}};
  c.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16, DType::i8};
  c.torch = "x0.masked_fill(x1, -3)";
  c.errors = {{"[masked_fill] the condition is int64, not bool", [] {
                 masked_fill(ones({2}), tensor<int64_t>({0, 1}), 0);
               }}};
  return {c};
}

std::vector<OpCase> copies() {
  std::vector<OpCase> list;
  for (const DType to_type : kAllTypes) {
    const std::string name(name_of(to_type));
    OpCase c = unary_case("to_" + name, nullptr, [](double x) { return x; }, integers(0, 2), 0.5);
    if (to_type == kBool) c.reference = pointwise([](double x) { return double(x != 0); });
    else if (!is_floating(to_type)) c.reference = pointwise([](double x) { return std::trunc(x); });
    c.op = [to_type](const Tensors& x) -> Tensors { return {to(x[0], to_type)}; };
    c.dtypes = kAllTypes;
    c.outputs = {Output::any};
    c.differentiable = to_type == DType::f64;
    c.torch = "x0.to(torch." + name + ")";
    list.push_back(c);
  }
  for (auto [name, f] : {std::pair{"clone", Unary(clone)}, std::pair{"contiguous", Unary(contiguous)}}) {
    OpCase c = unary_case(name, f, [](double x) { return x; }, uniform(-3, 3), 0);
    c.dtypes = kAllTypes;
    c.torch = std::string("x0.") + name + "()";
    c.samples.push_back(sample({{130, 70}}));
    c.samples.push_back(sample({{3, 65, 67}}));
    list.push_back(c);
  }
  list.push_back(to_device());
  return list;
}

std::vector<OpCase> in_place() {
  const Values wide = uniform(-3, 3), not_zero = away_from(uniform(-3, 3), {0}, 1.0), positive = uniform(0.2, 3);
  const auto two = [&](const char* name, const char* torch, const Values& b, auto edit,
                       double (*reference)(double, double)) {
    OpCase c;
    c.name = name;
    c.op = [edit](const Tensors& x) -> Tensors {
      const Tensor y = clone(x[0]);
      edit(y, x[1]);
      return {y};
    };
    c.reference = pointwise(std::function<double(double, double)>(reference));
    for (const auto& [x, y] :
         std::vector<std::pair<Shape, Shape>>{{{}, {}}, {{31}, {31}}, {{5, 7}, {7}}, {{5, 7}, {5, 1}}, {{2, 3}, {}}})
      c.samples.push_back({.inputs = {{.sizes = x, .values = wide}, {.sizes = y, .values = b}}});
    c.draw = [b](Draw& d) -> Sample {
      const Shape whole = d.shape();
      return {.inputs = {{.sizes = whole}, {.sizes = d.broadcasting_to(whole), .values = b}}};
    };
    c.dtypes = kFloatTypes;
    c.tolerance = {.ulps = 1};
    c.grad_tolerance = {.ulps = 16, .scale = 8};
    c.torch = torch;
    return c;
  };
  const auto one = [&](const char* name, const char* torch, const Values& values, auto edit,
                       double (*reference)(double)) {
    OpCase c = with_torch(unary_case(name, nullptr, reference, values), torch);
    c.op = [edit](const Tensors& x) -> Tensors {
      const Tensor y = clone(x[0]);
      edit(y);
      return {y};
    };
    c.bench.clear();
    return c;
  };
  std::vector<OpCase> list = {
      two(
          "add_", "x0.clone().add_(x1)", wide, [](const Tensor& x, const Tensor& y) { x += y; },
          [](double a, double b) { return a + b; }),
      two(
          "sub_", "x0.clone().sub_(x1)", wide, [](const Tensor& x, const Tensor& y) { x -= y; },
          [](double a, double b) { return a - b; }),
      two(
          "mul_", "x0.clone().mul_(x1)", wide, [](const Tensor& x, const Tensor& y) { x *= y; },
          [](double a, double b) { return a * b; }),
      two(
          "div_", "x0.clone().div_(x1)", not_zero, [](const Tensor& x, const Tensor& y) { x /= y; },
          [](double a, double b) { return a / b; }),
      two(
          "copy_", "x0.clone().copy_(x1)", wide, [](const Tensor& x, const Tensor& y) { x.copy_(y); },
          [](double, double b) { return b; }),
      one(
          "neg_", "x0.clone().neg_()", wide, [](const Tensor& x) { x.neg_(); }, [](double x) { return -x; }),
      one(
          "exp_", "x0.clone().exp_()", wide, [](const Tensor& x) { x.exp_(); }, [](double x) { return std::exp(x); }),
      one(
          "sqrt_", "x0.clone().sqrt_()", positive, [](const Tensor& x) { x.sqrt_(); },
          [](double x) { return std::sqrt(x); }),
      one(
          "relu_", "x0.clone().relu_()", alive(away_from(wide, {0}), 1.5), [](const Tensor& x) { x.relu_(); },
          [](double x) { return std::max(x, 0.0); }),
      one(
          "clamp_", "x0.clone().clamp_(-1, 1)", alive(away_from(wide, {-1, 1}), 0.5),
          [](const Tensor& x) { x.clamp_(-1, 1); }, [](double x) { return std::min(std::max(x, -1.0), 1.0); }),
      one(
          "add_number_", "x0.clone().add_(2)", wide, [](const Tensor& x) { x += 2; }, [](double x) { return x + 2; }),
      one(
          "mul_number_", "x0.clone().mul_(3)", wide, [](const Tensor& x) { x *= 3; }, [](double x) { return 3 * x; }),
      one(
          "fill_", "x0.clone().fill_(2)", wide, [](const Tensor& x) { x.fill_(2); }, [](double) { return 2.0; })};
  for (OpCase& c : list) c.zero_gradient = c.name == "fill_";
  list[0].errors = {
      {"does not fit into the tensor",
       [] {
         ones({3}).add_(ones({2, 3}));
       }},
      {"does not fit into a tensor of type int64", [] { zeros({2}, {.dtype = kInt64}).add_(ones({2})); }}};
  return list;
}

}  // namespace

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> all;
  for (const auto& family :
       {functions(), arithmetic(), with_numbers(), comparisons(), of_three(), masks(), copies(), in_place()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace levin::test
