#include "support/comparison.h"
#include "support/stored_values.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>

using namespace levin;
using namespace levin::test;

namespace {

/// Computes a parameter after a step from its value, its gradient and the number of the step; it keeps its own state.
using Reference = std::function<double(double, double, int)>;

/// Takes ten steps, of which one is skipped first, and compares the parameter with a reference of each element.
void check_steps(optim::Optimizer& optimizer, const Tensor& w, const std::function<Reference()>& reference) {
  std::vector<double> expected = w.to_vector<double>();
  std::vector<Reference> elements;
  for (std::size_t i = 0; i < expected.size(); ++i) elements.push_back(reference());
  for (int step = 1; step <= 10; ++step) {
    const Tensor gradient = formula(w.numel(), 10 + step).to(DType::f64);
    w.set_grad(gradient);
    if (step == 1 || step == 6) optimizer.step_unless(ones({}));  // changes nothing
    optimizer.step();
    const std::vector<double> g = gradient.to_vector<double>();
    for (std::size_t i = 0; i < g.size(); ++i) expected[i] = elements[i](expected[i], g[i], step);
  }
  CHECK(compare(w.detach(), from_data(expected, w.sizes(), {.dtype = DType::f64}), {.ulps = 8, .scale = 1}, 10) == "");
}

Tensor parameter() { return formula(20, 1).to(DType::f64).requires_grad_(); }

}  // namespace

// The references apply torch.optim's update rules to one element at a time, in double.

TEST_CASE("RMSprop follows PyTorch's formula") {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool centered : {false, true}) {
      for (const double alpha : {0.99, 0.25}) {
        CAPTURE(momentum);
        CAPTURE(centered);
        CAPTURE(alpha);
        const Tensor w = parameter();
        optim::RMSprop optimizer(
            {w},
            {.lr = 0.05, .alpha = alpha, .eps = 1e-2, .weight_decay = 0.1, .momentum = momentum, .centered = centered});
        check_steps(optimizer, w, [=]() -> Reference {
          return [=, square_avg = 0.0, grad_avg = 0.0, buffer = 0.0](double p, double g, int) mutable {
            g += 0.1 * p;
            square_avg = square_avg * alpha + (1 - alpha) * g * g;
            if (centered) grad_avg += (1 - alpha) * (g - grad_avg);
            const double avg = std::sqrt(square_avg - grad_avg * grad_avg) + 1e-2;
            if (momentum == 0) return p - 0.05 * g / avg;
            buffer = momentum * buffer + g / avg;
            return p - 0.05 * buffer;
          };
        });
      }
    }
  }
}

TEST_CASE("a centered RMSprop survives a variance that rounds below zero") {
  const Tensor w = zeros({1000}).requires_grad_();
  optim::RMSprop optimizer({w}, {.alpha = 0.5, .centered = true});
  const Tensor constant = formula(1000, 3);
  for (int step = 0; step < 200; ++step) {
    w.set_grad(constant);
    optimizer.step();
  }
  for (const float v : w.to_vector<float>()) CHECK(std::isfinite(v));
}

TEST_CASE("Adagrad follows PyTorch's formula") {
  for (const double initial : {0.0, 0.5}) {
    CAPTURE(initial);
    const Tensor w = parameter();
    optim::Adagrad optimizer(
        {w},
        {.lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.05, .initial_accumulator_value = initial, .maximize = true});
    check_steps(optimizer, w, [=]() -> Reference {
      return [=, sum = initial](double p, double g, int step) mutable {
        g = -g + 0.05 * p;
        sum += g * g;
        return p - 0.1 / (1 + (step - 1) * 0.2) * g / (std::sqrt(sum) + 1e-10);
      };
    });
  }
}

TEST_CASE("state dictionaries of RMSprop and Adagrad have PyTorch's slots") {
  const Tensor w = parameter();
  w.set_grad(ones({20}, {.dtype = DType::f64}));
  const std::vector<Parameter> params{{"w", w}};
  const auto names = [](optim::Optimizer& optimizer) {
    optimizer.step();
    std::vector<std::string> result;
    for (const auto& [name, value] : optimizer.state_dict())
      if (name.starts_with("state.w.")) result.push_back(name.substr(8));
    return result;
  };
  using Names = std::vector<std::string>;
  optim::RMSprop plain(params), all(params, {.momentum = 0.9, .centered = true}), centered(params, {.centered = true});
  optim::Adagrad adagrad(params);
  CHECK(names(plain) == Names{"step", "square_avg"});
  CHECK(names(centered) == Names{"step", "square_avg", "grad_avg"});
  CHECK(names(all) == Names{"step", "square_avg", "momentum_buffer", "grad_avg"});
  CHECK(names(adagrad) == Names{"step", "sum"});
}
