// Infinities and NaN that must be kept, and gradients of empty inputs that must be 0.

#include "cases/cases.h"
#include "cases/edges/edges.h"

#include <levin/autograd/ops.h>
#include <levin/kernels/optim.h>

#include <cmath>

namespace levin::test {

namespace {

using Line = EdgeValues;

/// An infinite logit with a target strictly between 0 and 1 gives an infinite loss.
OpCase infinite_logits() {
  OpCase c = edge_case(
      "bce_of_infinite_logits",
      [](const Tensors& x) -> Tensors { return {bce_with_logits(x[0], x[1], {.reduction = Reduction::none})}; },
      pointwise(
          [](double x, double t) { return std::isinf(x) ? kEdgeInfinity : std::log1p(std::exp(-x)) + (1 - t) * x; }),
      {});
  for (const Shape& sizes : {Shape{6}, {33}, {5, 7}})
    c.samples.push_back({.inputs = {values_of(sizes, {kEdgeInfinity, -kEdgeInfinity, 1.5, kEdgeInfinity, 0.0, 3.0}),
                                    values_of(sizes, {0.5, 0.25, 0.75, 0.0, 1.0, 0.125})}});
  c.outputs = {Output::same};
  c.layouts = {Layout::contiguous};
  c.tolerance = {.ulps = 8};
  return c;
}

/// The mean of a channel with an infinity is infinite, wherever the infinity is; its variance is NaN.
OpCase infinite_channels() {
  OpCase c = edge_case(
      "batch_norm_of_an_infinity",
      [](const Tensors& x) -> Tensors {
        const Tensor mean = zeros({x[0].size(1)}, like(x[0])), var = ones({x[0].size(1)}, like(x[0]));
        const Tensor y = batch_norm(x[0], mean, var, {}, {}, {.training = true, .momentum = 0.5});
        return {mean, var, isnan(y)};
      },
      [](const Tensors& in) -> Tensors {
        const Line v = in[0].to_vector<double>();
        const int64_t channels = in[0].size(1), spatial = in[0].numel() / (in[0].size(0) * channels);
        Line means(static_cast<std::size_t>(channels)), vars(means.size(), kEdgeNan);
        for (std::size_t i = 0; i < v.size(); ++i)
          means[static_cast<std::size_t>(static_cast<int64_t>(i) / spatial % channels)] += v[i];
        return {from_data(means, {channels}), from_data(vars, {channels}), ones(in[0].sizes(), {.dtype = kFloat64})};
      },
      {});
  // Every channel has one infinity, or two of opposite signs.
  const auto add = [&](const Shape& sizes, Line values) {
    c.samples.push_back({.inputs = {values_of(sizes, std::move(values))}});
  };
  add({4, 3}, {kEdgeInfinity, 1, 2, 0, 1, -kEdgeInfinity, 0, -kEdgeInfinity, 1, 1, 2, 0});
  add({2, 2, 3}, {kEdgeInfinity, 1, 2, 0, -kEdgeInfinity, 1, 1, 2, 0, 3, 1, 2});
  add({2, 1, 3}, {kEdgeInfinity, 1, 2, 0, -kEdgeInfinity, 1});
  add({3, 1, 7}, {1, 2, kEdgeInfinity, 0, 1, 1, 2});
  c.layouts = {Layout::contiguous};
  return c;
}

/// Differentiates the gradient (x, g) -> dx of f: the sum over dx's elements by both inputs.
TensorFunction twice(Binary f) {
  return slopes_of([f](const Tensors& x) -> Tensors {
    const Tensor y = f(x[0], x[1]);
    Tensors wanted;
    for (const Tensor& t : x)
      if (t.requires_grad()) wanted.push_back(t);
    Tensor total;
    for (const Tensor& d : grad(Tensors{y}, wanted, {.create_graph = true}, Tensors{ones_like(y)}))
      total = total.defined() ? add(total, sum(d)) : sum(d);
    return {total};
  });
}

/// If all labels are ignored, the mean is NaN and all gradients are 0.
OpCase nothing_to_learn() {
  OpCase c = edge_case(
      "nll_loss_of_ignored_labels",
      [](const Tensors& x) -> Tensors {
        enable_grad guard;
        const Tensor leaf = x[0].detach().requires_grad_(), g = ones({}, like(x[0])).requires_grad_();
        const Tensor loss = nll_loss(leaf, x[1], {.ignore_index = 2});
        const Tensor first = grad(Tensors{loss}, Tensors{leaf}, {.create_graph = true}, Tensors{g})[0];
        return {loss, first, grad(Tensors{first}, Tensors{g}, {}, Tensors{ones_like(first)})[0]};
      },
      [](const Tensors& x) -> Tensors {
        return {full({}, kEdgeNan, {.dtype = kFloat64}), zeros(x[0].sizes(), {.dtype = kFloat64}),
                zeros({}, {.dtype = kFloat64})};
      },
      {{.inputs = {{.sizes = {3, 4}}, values_of({3}, {2}, kInt64)}},
       {.inputs = {{.sizes = {2, 3, 5}}, values_of({2, 5}, {2}, kInt64)}}});
  return c;
}

/// 0 to a positive power has derivatives of 0 by the power. x is the exponent; the base is 0 or 2.
OpCase powers_of_zero() {
  OpCase c = edge_case(
      "pow_twice_of_integer_zero", twice([](const Tensor& b, const Tensor& e) { return pow(b, e); }),
      [](const Tensors& in) -> Tensors {
        const Line b = in[0].to_vector<double>(), e = in[1].to_vector<double>();
        Line second;
        for (std::size_t i = 0; i < b.size(); ++i)
          second.push_back(b[i] == 0 ? 0 : std::pow(b[i], e[i]) * std::log(b[i]) * std::log(b[i]));
        return {from_data(second, in[1].sizes())};
      },
      {{.inputs = {values_of({5}, {0, 2, 0, 3, 0}, kInt64), values_of({5}, {1.5, 0.5, 2, -1, 3})}}}, kWideFloats);
  c.layouts = {Layout::contiguous};
  c.tolerance = {.ulps = 32};
  return c;
}

/// With one value or none, first gradients do not depend on the values, so second ones are 0.
std::vector<OpCase> too_few_values() {
  // Second gradients by x and by the incoming gradient.
  const auto second_of = [](TensorFunction f) -> TensorFunction {
    return [f = std::move(f)](const Tensors& inputs) -> Tensors {
      enable_grad guard;
      Tensors x;
      for (const Tensor& t : inputs) x.push_back(t.detach().requires_grad_());
      const Tensor y = f(x)[0], g = ones_like(y).requires_grad_();
      Tensor total = zeros({}, like(x[0]));
      for (const Tensor& d : grad(Tensors{y}, x, {.create_graph = true}, Tensors{g})) total = add(total, sum(d));
      Tensors results;
      for (const Tensor& wanted : {x[0], g}) {
        const Tensor d = grad(Tensors{total}, Tensors{wanted}, {.retain_graph = true, .allow_unused = true}, {})[0];
        results.push_back(d.defined() ? d : zeros_like(wanted));
      }
      return results;
    };
  };
  OpCase one = edge_case(
      "var_of_one_number_twice", second_of([](const Tensors& x) -> Tensors { return {var(x[0])}; }),
      [](const Tensors&) -> Tensors {
        return {zeros({}, {.dtype = kFloat64}), full({}, kEdgeNan, {.dtype = kFloat64})};
      },
      {{.inputs = {{.sizes = {}}}}}, kWideFloats);
  OpCase none = edge_case(
      "cross_entropy_of_nothing_twice",
      second_of([](const Tensors& x) -> Tensors { return {cross_entropy(x[0], x[1])}; }),
      [](const Tensors& x) -> Tensors {
        return {zeros(x[0].sizes(), {.dtype = kFloat64}), zeros({}, {.dtype = kFloat64})};
      },
      {{.inputs = {{.sizes = {0, 3}}, {.sizes = {0, 3}}}}}, kWideFloats);
  return {one, none};
}

/// The derivative of b^e by b is e b^(e - 1), and that of it by e is 1 / b at e = 0.
OpCase powers_of_nought() {
  OpCase c = edge_case(
      "pow_slopes_to_the_power_0", slopes_of([](const Tensors& x) -> Tensors {
        const Tensor y = pow(x[0], x[1]);
        return {grad(Tensors{y}, Tensors{x[0]}, {.create_graph = true}, Tensors{ones_like(y)})[0]};
      }),
      [](const Tensors& in) -> Tensors {
        const Line b = in[0].to_vector<double>();
        Line by_e;
        for (const double v : b) by_e.push_back(1 / v);
        return {zeros(in[0].sizes(), {.dtype = kFloat64}), from_data(by_e, in[0].sizes())};
      },
      {{.inputs = {values_of({5}, {0.5, 2, 4, 8}), values_of({5}, {0})}}}, kWideFloats);
  c.layouts = {Layout::contiguous};
  c.tolerance = {.ulps = 8};
  return c;
}

/// amsgrad's maximal second moment keeps a NaN, whether the NaN is old or new.
OpCase nan_moments() {
  OpCase c = edge_case(
      "adam_step_amsgrad_with_nan",
      [](const Tensors& inputs) -> Tensors {
        const Tensors x = contiguous_copies(inputs);
        kernels::OptimTensor t;
        t.param = x[0].raw_data(), t.grad = x[1].raw_data(), t.first = x[2].raw_data();
        t.second = x[3].raw_data(), t.third = x[4].raw_data();
        t.numel = x[0].numel(), t.dtype = x[0].dtype(), t.step = 2;
        kernels::AdamStepArgs a{.tensors = {&t, 1}, .lr = 0.1, .amsgrad = true};
        Stream stream = current_stream(x[0].device());
        kernels::adam_step(a, stream);
        return {isnan(x[0]), isnan(x[4])};
      },
      [](const Tensors& in) -> Tensors {
        const Line g = in[1].to_vector<double>(), w = in[4].to_vector<double>();
        Line nan;
        for (std::size_t i = 0; i < g.size(); ++i) nan.push_back(std::isnan(g[i]) || std::isnan(w[i]));
        return {from_data(nan, in[0].sizes()), from_data(nan, in[0].sizes())};
      },
      {});
  for (const Shape& sizes : {Shape{7}, {33}})
    c.samples.push_back(
        {.inputs = {values_of(sizes, {1, 2}), values_of(sizes, {0.5, kEdgeNan, 1}), values_of(sizes, {0.25}),
                    values_of(sizes, {0.5}), values_of(sizes, {0.125, 2, 1, kEdgeNan})}});
  c.layouts = {Layout::contiguous};
  return c;
}

/// Elements of x that share memory have separate gradients: those of the windows of each.
OpCase windows_of_shared_memory() {
  const Line weights = {1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31};  // of the elements of the (3, 2, 2) windows
  OpCase c =
      edge_case("unfold_of_shared_memory", slopes_of([weights](const Tensors& x) -> Tensors {
                  return {mul(unfold(x[0], 1, 2, 1), from_data(weights, {3, 2, 2}).to(x[0].dtype()).to(x[0].device()))};
                }),
                [weights](const Tensors& x) -> Tensors {
                  Line slopes(9);
                  for (std::size_t i = 0; i < weights.size(); ++i) slopes[i / 4 * 3 + i / 2 % 2 + i % 2] += weights[i];
                  return {from_data(slopes, x[0].sizes())};
                },
                {{.inputs = {{.sizes = {3, 3}}}}});
  return c;
}

}  // namespace

std::vector<OpCase> edge_infinity_cases() {
  std::vector<OpCase> all = too_few_values();
  for (OpCase& c : std::vector<OpCase>{infinite_logits(), infinite_channels(), nothing_to_learn(), powers_of_zero(),
                                       powers_of_nought(), nan_moments(), windows_of_shared_memory()})
    all.push_back(std::move(c));
  return all;
}

}  // namespace levin::test
