#include "support/stored_values.h"

#include <levin/autograd/ops.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;
using namespace levin::optim;
using namespace levin::test;

namespace {

std::vector<ParamGroup> two_groups() {
  return {{.params = {{"a", zeros({1}).requires_grad_()}}},
          {.params = {{"b", zeros({1}).requires_grad_()}}, .settings = {{"lr", 0.02}}}};
}
Adam adam() { return Adam(two_groups(), {.lr = 0.1}); }
SGD sgd() { return SGD(two_groups(), {.lr = 0.1, .momentum = 0.9}); }

/// Rows of both groups' rates and the first one's momentum, after 0, 1, 2, ... calls of step.
void check_rows(const char* name, Optimizer& optimizer, const std::function<void(std::size_t)>& step) {
  const Tensor stored = read_stored_values("schedulers.txt").at(name);
  const std::vector<double> expected = stored.to_vector<double>();
  for (std::size_t row = 0; row < static_cast<std::size_t>(stored.size(0)); ++row) {
    const ParamGroup& first = optimizer.param_groups()[0];
    const double actual[] = {first["lr"], optimizer.param_groups()[1]["lr"],
                             first[first.has("beta1") ? "beta1" : "momentum"]};
    for (std::size_t k = 0; k < 3; ++k) {
      const double want = expected[3 * row + k];
      // PyTorch multiplies rates step by step; each step rounds once or twice.
      CHECK_MESSAGE(std::abs(actual[k] - want) <= 4 * 0x1p-52 * static_cast<double>(row + 2) * std::abs(want) + 1e-17,
                    name, " row ", row, " value ", k, ": ", actual[k], " expected ", want);
    }
    if (row + 1 < static_cast<std::size_t>(stored.size(0))) step(row);
  }
}

}  // namespace

TEST_CASE("schedulers equal PyTorch's") {
  const auto check = [](const char* name, Optimizer& optimizer, Scheduler&& s) {
    check_rows(name, optimizer, [&](std::size_t) { s.step(); });
  };
  { Adam o = adam(); check("step", o, StepLR(o, 3, 0.5)); }
  { Adam o = adam(); check("cosine", o, CosineAnnealingLR(o, 8, 1e-3)); }
  { Adam o = adam(); check("warmup", o, LinearWarmup(o, {.total_iters = 4, .start_factor = 0.1})); }
  { Adam o = adam(); check("lambda", o, LambdaLR(o, [](int64_t e) { return std::pow(0.9, static_cast<double>(e)); })); }
  { Adam o = adam(); check("one_cycle", o, OneCycleLR(o, {.max_lr = 0.4, .total_steps = 20})); }
  {
    SGD o = sgd();
    check("one_cycle_linear", o,
          OneCycleLR(o, {.max_lr = 0.4,
                         .epochs = 3,
                         .steps_per_epoch = 7,
                         .pct_start = 0.4,
                         .anneal_strategy = Anneal::linear,
                         .div_factor = 10.0}));
  }
  {
    SGD o = sgd();
    check("one_cycle_three", o, OneCycleLR(o, {.max_lr = 0.4, .total_steps = 15, .three_phase = true}));
  }
}

TEST_CASE("ReduceLROnPlateau equals PyTorch's") {
  const std::vector<double> metrics = {1.0, 0.9, 0.9, 0.95, 0.9, 0.91, 0.5, 0.49999,
                                       0.6, 0.7, 0.8, 0.2,  0.9, 0.9,  0.9, 0.9};
  Adam a = adam(), b = adam();
  ReduceLROnPlateau low(a, {.factor = 0.5, .patience = 1, .cooldown = 1, .min_lr = 0.01});
  check_rows("plateau", a, [&](std::size_t i) { low.step(metrics[i]); });
  ReduceLROnPlateau high(
      b,
      {.mode = PlateauMode::max, .factor = 0.5, .patience = 0, .threshold = 0.1, .threshold_mode = ThresholdMode::abs});
  check_rows("plateau_max", b, [&](std::size_t i) { high.step(metrics[i]); });
}

TEST_CASE("a scheduler continues from its state") {
  Adam a = adam(), b = adam();
  OneCycleLR first(a, {.max_lr = 0.4, .total_steps = 20}), second(b, {.max_lr = 0.4, .total_steps = 20});
  for (int i = 0; i < 7; ++i) first.step();
  second.load_state_dict(first.state_dict());
  CHECK(second.last_epoch() == 7);
  first.step();
  second.step();
  CHECK(first.get_last_lr() == second.get_last_lr());
  CHECK_THROWS_AS(second.load_state_dict({}), StateError);
  ReduceLROnPlateau p(a, {.patience = 0}), q(a, {.patience = 0});
  p.step(1.0);
  q.load_state_dict(p.state_dict());
  const double before = a.param_groups()[0]["lr"];
  q.step(2.0);
  CHECK(a.param_groups()[0]["lr"] == before * 0.1);
}

TEST_CASE("a scheduler works after its optimizer was moved") {
  auto first = std::make_unique<SGD>(two_groups(), SGDOptions{.lr = 1.0});
  StepLR scheduler(*first, 1, 0.5);
  SGD moved = std::move(*first);
  first.reset();
  scheduler.step();
  CHECK(moved.param_groups()[0]["lr"] == 0.5);
}

TEST_CASE("schedulers refuse what makes no sense") {
  Adam o = adam();
  CHECK_THROWS_AS(StepLR(o, 0), ValueError);
  CHECK_THROWS_AS(CosineAnnealingLR(o, 0), ValueError);
  CHECK_THROWS_AS(LinearWarmup(o, {.start_factor = 2.0}), ValueError);
  CHECK_THROWS_AS(OneCycleLR(o, {.max_lr = 1.0}), ValueError);
  CHECK_THROWS_AS(OneCycleLR(o, {.total_steps = 10, .pct_start = 1.5}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(o, {.factor = 1.0}), ValueError);
  OneCycleLR s(o, {.total_steps = 2});
  s.step();
  s.step();
  CHECK_THROWS_AS(s.step(), ValueError);
}
