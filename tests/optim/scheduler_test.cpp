#include "support/comparison.h"
#include "support/stored_values.h"

#include <levin/autograd/ops.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

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

TEST_CASE("schedulers match PyTorch's") {
  const auto check = [](const char* name, Optimizer& optimizer, Scheduler&& s) {
    check_rows(name, optimizer, [&](std::size_t) { s.step(); });
  };
  { Adam o = adam(); check("step", o, StepLR(o, 3, 0.5)); }
  { Adam o = adam(); check("cosine", o, CosineAnnealingLR(o, 8, 1e-3)); }
  { Adam o = adam(); check("warmup", o, LinearLR(o, {.start_factor = 0.1, .total_iters = 4})); }
  { Adam o = adam(); check("linear", o, LinearLR(o, {.start_factor = 0.5, .end_factor = 0.2, .total_iters = 6})); }
  { Adam o = adam(); check("lambda", o, LambdaLR(o, [](int64_t e) { return std::pow(0.9, static_cast<double>(e)); })); }
  { Adam o = adam(); check("multiplicative", o, MultiplicativeLR(o, [](int64_t e) { return 1 - 0.05 * double(e); })); }
  { Adam o = adam(); check("multi_step", o, MultiStepLR(o, {2, 5, 5, 8}, 0.5)); }
  { Adam o = adam(); check("exponential", o, ExponentialLR(o, 0.8)); }
  { Adam o = adam(); check("constant", o, ConstantLR(o, {.factor = 0.25, .total_iters = 4})); }
  { Adam o = adam(); check("polynomial", o, PolynomialLR(o, {.total_iters = 6, .power = 2.0})); }
  {
    Adam o = adam();
    check("warm_restarts", o, CosineAnnealingWarmRestarts(o, {.t_0 = 4, .t_mult = 2, .eta_min = 1e-3}));
  }
  { Adam o = adam(); check("warm_restarts_equal", o, CosineAnnealingWarmRestarts(o, {.t_0 = 5})); }
  {
    SGD o = sgd();
    check("cyclic", o, CyclicLR(o, {.base_lr = 0.01, .max_lr = 0.2, .step_size_up = 4, .step_size_down = 6}));
  }
  {
    Adam o = adam();
    check("cyclic_triangular2", o,
          CyclicLR(o, {.base_lr = 0.01, .max_lr = 0.2, .step_size_up = 3, .mode = CyclicMode::triangular2}));
  }
  {
    SGD o = sgd();
    check("cyclic_exp_range", o, CyclicLR(o, {.base_lr = 0.01, .max_lr = 0.2, .step_size_up = 3,
                                              .mode = CyclicMode::exp_range, .gamma = 0.9, .cycle_momentum = false}));
  }
  {
    Adam o = adam();
    check("sequential", o, SequentialLR(o, {4, 10}, LinearLR(o, {.start_factor = 0.1, .total_iters = 4}),
                                        CosineAnnealingLR(o, 6, 1e-3), ExponentialLR(o, 0.5)));
  }
  {
    Adam o = adam();
    check("chained", o, ChainedScheduler(o, ConstantLR(o, {.factor = 0.1, .total_iters = 3}), ExponentialLR(o, 0.9)));
  }
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

TEST_CASE("ReduceLROnPlateau matches PyTorch's") {
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

TEST_CASE("composed schedulers continue from their state, and a state that lacks a part changes nothing") {
  const auto sequential = [](Adam& o) {
    return SequentialLR(o, {3}, ConstantLR(o, {.factor = 0.5, .total_iters = 2}),
                        ChainedScheduler(o, ExponentialLR(o, 0.9), StepLR(o, 2, 0.5)));
  };
  for (const int stop : {1, 3, 5}) {
    Adam a = adam(), b = adam();
    SequentialLR first = sequential(a), second = sequential(b);
    for (int i = 0; i < stop; ++i) first.step();
    second.load_state_dict(first.state_dict());
    b.load_state_dict(a.state_dict());
    for (int i = 0; i < 4; ++i) {
      first.step();
      second.step();
      CHECK(first.get_last_lr() == second.get_last_lr());
    }
    StateDict partial;
    for (const auto& [name, value] : a.state_dict()) partial.set(name, value);
    const auto before = first.state_dict();
    CHECK_THROWS_AS(first.load_state_dict(partial), StateError);
    for (const auto& [name, value] : before) CHECK(first.state_dict().at(name).item<double>() == value.item<double>());
  }
}

TEST_CASE("composed schedulers scale the base rates of their parts") {
  Adam a = adam();
  SequentialLR s(a, {2}, ConstantLR(a, {.factor = 0.5, .total_iters = 9}), ExponentialLR(a, 0.5));
  s.scale_base_lrs(4);
  for (auto& g : a.param_groups()) g["lr"] *= 4;
  s.step();
  CHECK(a.param_groups()[0]["lr"] == 0.2);
  s.step();
  CHECK(a.param_groups()[0]["lr"] == 0.4);
  s.step();
  CHECK(a.param_groups()[0]["lr"] == 0.2);
}

TEST_CASE("a scheduler keeps what an earlier one has made of the rate, and its base is the rate that was given") {
  Adam a = adam();
  StepLR first(a, 1, 0.5);
  first.step();
  LinearLR second(a, {.start_factor = 0.5, .total_iters = 2});
  CHECK(second.state_dict().at("base_lrs.0").item<double>() == 0.1);
  CHECK(a.param_groups()[0]["lr"] == 0.025);
  first.step();
  CHECK(a.param_groups()[0]["lr"] == 0.0125);
  second.step();
  CHECK(a.param_groups()[0]["lr"] == approx(0.01875, {.relative = 1e-15}));
  CHECK(a.param_groups()[1]["lr"] == approx(0.00375, {.relative = 1e-15}));
}

TEST_CASE("a scheduler works after its optimizer has been moved") {
  auto first = std::make_unique<SGD>(two_groups(), SGDOptions{.lr = 1.0});
  StepLR scheduler(*first, 1, 0.5);
  SGD moved = std::move(*first);
  first.reset();
  scheduler.step();
  CHECK(moved.param_groups()[0]["lr"] == 0.5);
}

TEST_CASE("schedulers refuse invalid arguments") {
  Adam o = adam();
  CHECK_THROWS_AS(StepLR(o, 0), ValueError);
  CHECK_THROWS_AS(CosineAnnealingLR(o, 0), ValueError);
  CHECK_THROWS_AS(LinearLR(o, {.start_factor = 2.0}), ValueError);
  CHECK_THROWS_AS(LinearLR(o, {.end_factor = 1.5}), ValueError);
  CHECK_THROWS_AS(OneCycleLR(o, {.max_lr = 1.0}), ValueError);
  CHECK_THROWS_AS(OneCycleLR(o, {.total_steps = 10, .pct_start = 1.5}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(o, {.factor = 1.0}), ValueError);
  CHECK_THROWS_AS(MultiStepLR(o, {3, 2}), ValueError);
  CHECK_THROWS_AS(ConstantLR(o, {.factor = 2.0}), ValueError);
  CHECK_THROWS_AS(PolynomialLR(o, {.total_iters = 0}), ValueError);
  CHECK_THROWS_AS(CosineAnnealingWarmRestarts(o, {.t_0 = 0}), ValueError);
  CHECK_THROWS_AS(CyclicLR(o, {.step_size_up = 0}), ValueError);
  CHECK_THROWS_AS(SequentialLR(o, {}, StepLR(o, 1), StepLR(o, 2)), ValueError);
  CHECK_THROWS_AS(SequentialLR(o, {4, 2}, StepLR(o, 1), StepLR(o, 2), StepLR(o, 3)), ValueError);
  OneCycleLR s(o, {.total_steps = 2});
  s.step();
  s.step();
  CHECK_THROWS_AS(s.step(), ValueError);
}

TEST_CASE("a plateau scheduler saved in its cooldown resumes it") {
  Adam a = adam(), b = adam();
  const ReduceLROnPlateauOptions options{.factor = 0.5, .patience = 0, .cooldown = 2};
  ReduceLROnPlateau first(a, options), second(b, options);
  first.step(1.0);
  first.step(2.0);  // the rate falls, and a cooldown of two steps begins
  CHECK(a.param_groups()[0]["lr"] == 0.05);
  second.load_state_dict(first.state_dict());
  b.load_state_dict(a.state_dict());
  for (const double rate : {0.05, 0.05, 0.025}) {
    first.step(2.0);
    second.step(2.0);
    CHECK(a.param_groups()[0]["lr"] == rate);
    CHECK(b.param_groups()[0]["lr"] == rate);
  }
}

TEST_CASE("a plateau scheduler in max mode has a relative threshold and skips changes below eps") {
  Adam a = adam(), b = adam();
  ReduceLROnPlateau high(a, {.mode = PlateauMode::max, .factor = 0.5, .patience = 0, .threshold = 0.25});
  high.step(1.0);
  high.step(1.5);
  CHECK(a.param_groups()[0]["lr"] == 0.1);
  high.step(1.75);  // more, but not by a quarter
  CHECK(a.param_groups()[0]["lr"] == 0.05);
  ReduceLROnPlateau coarse(b, {.factor = 0.5, .patience = 0, .eps = 0.02});
  coarse.step(1.0);
  coarse.step(1.0);
  CHECK(b.param_groups()[0]["lr"] == 0.05);
  CHECK(b.param_groups()[1]["lr"] == 0.02);  // half of it would be a change of 0.01
}

TEST_CASE("one cycle with custom factors and momenta, and without momentum") {
  SGD o = sgd(), still = sgd();
  const OneCycleOptions options{.max_lr = 0.4,
                                .total_steps = 10,
                                .pct_start = 0.5,
                                .base_momentum = 0.25,
                                .max_momentum = 0.75,
                                .div_factor = 4,
                                .final_div_factor = 8};
  const auto rounded = [](double actual, double wanted) { return std::abs(actual - wanted) <= 1e-15 * wanted; };
  OneCycleLR cycle(o, options);
  CHECK(rounded(o.param_groups()[1]["lr"], 0.4 / 4));
  CHECK(o.param_groups()[1]["momentum"] == 0.75);
  for (int i = 0; i < 4; ++i) cycle.step();
  CHECK(o.param_groups()[1]["lr"] == 0.4);
  CHECK(o.param_groups()[1]["momentum"] == 0.25);
  for (int i = 0; i < 5; ++i) cycle.step();
  CHECK(rounded(o.param_groups()[1]["lr"], 0.4 / 4 / 8));
  CHECK(o.param_groups()[1]["momentum"] == 0.75);
  OneCycleLR rate_only(still, {.max_lr = 0.4, .total_steps = 10, .cycle_momentum = false});
  for (int i = 0; i < 5; ++i) rate_only.step();
  CHECK(still.param_groups()[0]["momentum"] == 0.9);
}

TEST_CASE("a loaded scheduler continues from the saved base rates") {
  Adam a = adam(), b(two_groups(), {.lr = 3.0});
  StepLR first(a, 2, 0.5), second(b, 2, 0.5);
  first.step();
  first.scale_base_lrs(4);
  for (auto& g : a.param_groups()) g["lr"] *= 4;
  second.load_state_dict(first.state_dict());
  b.load_state_dict(a.state_dict());
  first.step();
  second.step();
  CHECK(a.param_groups()[0]["lr"] == 0.2);
  CHECK(second.get_last_lr() == first.get_last_lr());
}

TEST_CASE("chained schedulers multiply the changes of their rates, also of a rate that others set") {
  SGD o(std::vector<Parameter>{{"a", zeros({1}).requires_grad_()}}, {.lr = 0.8});
  StepLR decay(o, 2, 0.5);
  CosineAnnealingLR cosine(o, 4);
  const auto& group = o.param_groups()[0];
  for (int i = 1; i <= 3; ++i) {
    decay.step();
    cosine.step();
    const double expected = 0.8 * std::pow(0.5, i / 2) * (1 + std::cos(std::numbers::pi * i / 4)) / 2;
    CHECK(std::abs(group["lr"] - expected) <= 1e-15);
  }
  o.param_groups()[0]["lr"] = 0.1;
  decay.step();
  CHECK(std::abs(group["lr"] - 0.05) <= 1e-15);
  LambdaLR from_zero(o, [](int64_t e) { return static_cast<double>(e); });
  CHECK(group["lr"] == 0);
  from_zero.step();
  CHECK(group["lr"] == 0.8);
}
