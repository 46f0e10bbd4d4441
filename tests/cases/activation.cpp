#include "cases/cases.h"
#include "cases/pointwise.h"

#include <levin/autograd/ops/creation.h>

#include <cmath>
#include <numbers>

namespace levin::test {

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The elements that dropout keeps depend only on the generator.
TensorFunction dropout_reference(double p) {
  return [p](const Tensors& x) -> Tensors {
    const Generator g(11);
    std::vector<double> v = x[0].to_vector<double>();
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto words = philox(g.state().seed, g.state().offset + i / 4);
      v[i] = static_cast<double>(words[i % 4] >> 8) * 0x1p-24 < p ? 0 : v[i] / (1 - p);
    }
    return {from_data(v, x[0].sizes())};
  };
}

OpCase dropout_case() {
  OpCase c = unary_case("dropout", nullptr, [](double x) { return x; }, uniform(-3, 3), 2);
  c.op = [](const Tensors& x) -> Tensors {
    Generator g(11);
    return {dropout(x[0], 0.3, true, &g)};
  };
  c.reference = dropout_reference(0.3);
  c.torch.clear();
  c.errors = {{"[dropout] the probability 1.5 is not in [0, 1]", [] { dropout(ones({2}), 1.5); }},
              {"[dropout] int64 cannot be scaled", [] { dropout(tensor<int64_t>({1}), 0.5); }}};
  return c;
}

}  // namespace

std::vector<OpCase> activation_cases() {
  const Values wide = uniform(-4, 4), kinked = alive(away_from(uniform(-4, 4), {0}), 1.5);
  std::vector<OpCase> list = {
      with_types(unary_case(
                     "relu", [](const Tensor& x) { return relu(x); }, [](double x) { return std::max(x, 0.0); },
                     kinked, 0),
                 kNumericTypes),
      with_torch(unary_case(
                     "leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.1); },
                     [](double x) { return x > 0 ? x : 0.1 * x; }, kinked, 1),
                 "F.leaky_relu(x0, 0.1)"),
      with_torch(unary_case(
                     "elu", [](const Tensor& x) { return elu(x, 1.5); },
                     [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }, kinked),
                 "F.elu(x0, 1.5)"),
      with_torch(unary_case(
                     "gelu", [](const Tensor& x) { return gelu(x); },
                     [](double x) { return 0.5 * x * std::erfc(-x * 0.5 * std::numbers::sqrt2); }, wide),
                 "F.gelu(x0)"),
      with_torch(unary_case(
                     "gelu_tanh", [](const Tensor& x) { return gelu(x, Approximate::tanh); },
                     [](double x) {
                       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
                     },
                     wide),
                 "F.gelu(x0, approximate='tanh')"),
      with_torch(unary_case(
                     "silu", silu, [](double x) { return x * logistic(x); }, wide),
                 "F.silu(x0)"),
      with_torch(unary_case(
                     "softplus", [](const Tensor& x) { return softplus(x, 2.0, 6.0); },
                     [](double x) { return 2 * x > 6 ? x : std::log1p(std::exp(2 * x)) / 2; }, away_from(wide, {3})),
                 "F.softplus(x0, 2.0, 6.0)"),
      with_torch(unary_case(
                     "logsigmoid", logsigmoid,
                     [](double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); }, wide),
                 "F.logsigmoid(x0)"),
      with_torch(unary_case(
                     "selu", selu,
                     [](double x) {
                       return 1.0507009873554804934193349852946 *
                              (x > 0 ? x : 1.6732632423543772848170429916717 * std::expm1(x));
                     },
                     kinked),
                 "F.selu(x0)"),
      with_torch(unary_case(
                     "hardsigmoid", hardsigmoid, [](double x) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; },
                     alive(away_from(uniform(-5, 5), {-3, 3}), 1.5)),
                 "F.hardsigmoid(x0)"),
      with_torch(unary_case(
                     "hardswish", hardswish, [](double x) { return x * (std::min(std::max(x + 3, 0.0), 6.0) / 6); },
                     alive(away_from(uniform(-5, 5), {-3, 3}), 1.5)),
                 "F.hardswish(x0)"),
      with_torch(unary_case(
                     "mish", mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, wide),
                 "F.mish(x0)"),
      with_torch(unary_case(
                     "softsign", softsign, [](double x) { return x / (1 + std::abs(x)); }, away_from(wide, {0})),
                 "F.softsign(x0)"),
      with_types(unary_case("sigmoid", [](const Tensor& x) { return sigmoid(x); }, logistic, wide), kAllTypes,
                 Output::floating),
      with_types(unary_case("tanh", [](const Tensor& x) { return tanh(x); }, std::tanh, wide), kAllTypes,
                 Output::floating),
      dropout_case()};
  for (OpCase& c : list) {
    if (c.name.starts_with("gelu")) c.tolerance = {.ulps = 4, .scale = 4};  // multiplies x by a number near 0
    c.grad_tolerance = {.ulps = 16, .scale = 2};
    // 1 - tanh^2 has few digits left and is multiplied by up to 8.
    if (c.name == "gelu_tanh") c.grad_tolerance.scale = 8;
  }
  list[0].errors = {{"[relu] bool is not accepted", [] { relu(ones({2}, {.dtype = kBool})); }}};
  list[3].errors = {{"[gelu] int64 has no such function", [] { gelu(tensor<int64_t>({1})); }}};
  return list;
}

}  // namespace levin::test
