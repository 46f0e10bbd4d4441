#include "support/comparison.h"
#include "support/stored_values.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

using namespace levin;

namespace {

/// LAMB by its rule, in double precision (You et al. 2020, algorithm 2).
struct LambByHand {
  std::vector<double> w, m, v;
  int step = 0;

  explicit LambByHand(std::vector<double> start) : w(std::move(start)), m(w.size()), v(w.size()) {}

  void advance(const std::vector<double>& g, double lr, double beta1, double beta2, double eps, double decay) {
    ++step;
    std::vector<double> r(w.size());
    double of_w = 0, of_r = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      r[i] = m[i] / (1 - std::pow(beta1, step)) / (std::sqrt(v[i] / (1 - std::pow(beta2, step))) + eps) + decay * w[i];
      of_w += w[i] * w[i];
      of_r += r[i] * r[i];
    }
    const double ratio = of_w > 0 && of_r > 0 ? std::sqrt(of_w) / std::sqrt(of_r) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= lr * ratio * r[i];
  }
};

}  // namespace

TEST_CASE("LAMB follows its paper's rule, also from a parameter of zeros") {
  for (const std::vector<double>& start : {std::vector<double>{1, -2, 0.5}, {0, 0, 0}}) {
    const Tensor w = tensor(start, {.dtype = kFloat64}).requires_grad_();
    optim::LAMB lamb({w}, {.lr = 0.1, .betas = {0.8, 0.9}, .eps = 1e-3, .weight_decay = 0.2});
    LambByHand expected(start);
    for (int step = 0; step < 20; ++step) {
      const std::vector<double> g = {std::sin(step), 0.5, 0.1 * step - 1};
      w.set_grad(tensor(g, {.dtype = kFloat64}));
      lamb.step();
      expected.advance(g, 0.1, 0.8, 0.9, 1e-3, 0.2);
      for (int64_t i = 0; i < 3; ++i)
        CHECK(w[i].item<double>() == levin::test::approx(expected.w[static_cast<std::size_t>(i)], {.relative = 1e-12}));
    }
  }
}

TEST_CASE("a composed optimizer resumes to the same bits, and skips a step whose gradients are not finite") {
  const auto start = [] { return tensor({1.0, -2.0, 0.5}, {.dtype = kFloat64}).requires_grad_(); };
  const auto train = [](optim::Optimizer& o, const Tensor& w, int from, int to) {
    for (int step = from; step < to; ++step) {
      w.set_grad(w.detach() * 0.5 + std::cos(step));
      o.step();
    }
  };
  const Tensor whole = start(), first = start();
  optim::NAdam in_one({whole}, {.lr = 0.05}), before({first}, {.lr = 0.05});
  train(in_one, whole, 0, 8);
  train(before, first, 0, 4);
  const Tensor second = first.detach().clone().requires_grad_();
  optim::NAdam after({second}, {.lr = 0.05});
  after.load_state_dict(before.state_dict());
  train(after, second, 4, 8);
  CHECK(second.to_vector<double>() == whole.to_vector<double>());

  const auto kept = second.to_vector<double>();
  after.step_unless(ones({}));
  CHECK(second.to_vector<double>() == kept);
  after.step_unless(zeros({}));
  CHECK(second.to_vector<double>() != kept);
  // The skipped step does not count.
  CHECK(after.state_dict().at("state.0.step").item<double>() == 9);
}

TEST_CASE("a 16-bit parameter is updated in float32") {
  const Tensor w = ones({4}, kBFloat16).requires_grad_();
  optim::NAdam nadam({w}, {.lr = 0.1});
  w.set_grad(ones({4}, kBFloat16));
  nadam.step();
  CHECK(w.dtype() == kBFloat16);
  CHECK(w[0].item<double>() < 1);
}

TEST_CASE("composed optimizers refuse what they cannot do") {
  const Tensor w = ones({2, 3}).requires_grad_(), b = ones({3}).requires_grad_();
  CHECK_THROWS_WITH_AS((optim::Muon({w, b})), doctest::Contains("[Muon] \"1\" is (3,), and Muon updates matrices"),
                       ValueError);
  CHECK_THROWS_WITH_AS((optim::NAdam({w}, {.betas = {1.5, 0.9}})), doctest::Contains("[NAdam] beta1 is 1.5"),
                       ValueError);
  CHECK_THROWS_WITH_AS(
      (optim::LAMB(std::vector<optim::ParamGroup>{{.params = optim::named({w}), .settings = {{"capturable", 1}}}})),
      doctest::Contains("[LAMB] its steps cannot be captured"), ValueError);
}

namespace {

/// The problem of make_values.py.
struct Waves {
  std::vector<Tensor> params = {test::formula(7, 1).to(kFloat64).requires_grad_(),
                                test::formula(20, 2).to(kFloat64).requires_grad_()};
  int evaluations = 0;

  void step(optim::LBFGS& lbfgs) {
    lbfgs.step([&] {
      ++evaluations;
      lbfgs.zero_grad();
      const Tensor loss =
          square(params[0]).sum() + sin(params[0] * 3).sum() + square(params[1]).sum() * 2 + sin(params[1] * 3).sum();
      loss.backward();
      return loss;
    });
  }
};

}  // namespace

TEST_CASE("steps of LBFGS match PyTorch's, and go on after a checkpoint as if they had not stopped") {
  const test::StoredValues stored = test::read_stored_values("optimizers.txt");
  const std::vector<std::pair<std::string, optim::LBFGSOptions>> runs = {
      {"lbfgs", {.lr = 0.5, .max_iter = 4}}, {"lbfgs_short", {.max_eval = 3, .history_size = 2}},
      {"lbfgs_search", {.max_iter = 3, .line_search_fn = optim::LineSearch::strong_wolfe}}};
  for (const auto& run : runs) {
    const std::string& name = run.first;
    const optim::LBFGSOptions& options = run.second;
    Waves waves;
    auto lbfgs = std::make_unique<optim::LBFGS>(waves.params, options);
    for (int step = 0; step < 5; ++step) {
      waves.step(*lbfgs);
      for (std::size_t i = 0; i < 2; ++i) {
        const Tensor& expected = stored.at(fmt::format("{}/step{}/param{}", name, step, i));
        CHECK_MESSAGE(test::compare(waves.params[i].detach(), expected, {.ulps = 64, .scale = 16}, 64).empty(), name,
                      " step ", step);
      }
      if (step != 2) continue;
      const StateDict state = lbfgs->state_dict();
      lbfgs = std::make_unique<optim::LBFGS>(waves.params, options);
      lbfgs->load_state_dict(state);
    }
  }
}

TEST_CASE("LBFGS needs a closure and one group") {
  const Tensor w = ones({2}).requires_grad_();
  optim::LBFGS lbfgs({w});
  w.set_grad(ones({2}));
  CHECK_THROWS_WITH_AS(lbfgs.step(), doctest::Contains("[LBFGS] a step calls its closure several times"), StateError);
  CHECK_THROWS_WITH_AS(lbfgs.add_param_group({.params = optim::named({ones({2}).requires_grad_()})}),
                       doctest::Contains("[LBFGS] its parameters are one group"), ValueError);
  CHECK_THROWS_WITH_AS((optim::LBFGS({w}, {.max_iter = 0})), doctest::Contains("[LBFGS] max_iter is 0"), ValueError);
}

TEST_CASE("LBFGS with a line search reaches the minimum of Rosenbrock's valley") {
  const Tensor x = tensor({-1.2, 1.0}, {.dtype = kFloat64}).requires_grad_();
  optim::LBFGS lbfgs(
      {x},
      {.max_iter = 100, .max_eval = 300, .tolerance_change = 0, .line_search_fn = optim::LineSearch::strong_wolfe});
  lbfgs.step([&] {
    lbfgs.zero_grad();
    const Tensor a = x.select(0, 0), b = x.select(0, 1);
    const Tensor loss = square(1 - a) + 100 * square(b - square(a));
    loss.backward();
    return loss;
  });
  for (const double value : x.detach().to_vector<double>()) CHECK(value == test::approx(1.0, {.relative = 1e-6}));
}
