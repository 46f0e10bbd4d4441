// Loss scaling: the state machine, skipped steps, and errors.

#include <doctest/doctest.h>
#include <levin/autograd/autocast.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/ops.h>
#include <levin/optim/optim.h>

#include <cmath>
#include <limits>

#include "support/comparison.h"

using namespace levin;
using levin::test::approx;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor leaf(std::initializer_list<double> values) { return tensor<double>(values).requires_grad_(); }

std::vector<float> values(const Tensor& t) { return t.detach().to_vector<float>(); }

/// Takes one step with a scaled gradient of `w` of `gradient` times the scale.
void scaled_step(GradScaler& scaler, optim::Optimizer& opt, const Tensor& w, double gradient) {
  opt.zero_grad();
  scaler.scale(sum(w * gradient)).backward();
  scaler.step(opt);
  scaler.update();
}

}  // namespace

TEST_CASE("scaler/state_machine: a good step equals the step without scaling") {
  const Tensor a = leaf({1, 2, 3}), b = leaf({1, 2, 3});
  optim::AdamW scaled({a}), plain({b});
  GradScaler scaler;
  for (int i = 0; i < 5; ++i) {
    scaled_step(scaler, scaled, a, 0.5 + i);
    plain.zero_grad();
    sum(b * (0.5 + i)).backward();
    plain.step();
    CHECK(values(a) == values(b));
  }
  CHECK(scaler.get_scale() == 65536.0);
  CHECK(scaler.get_growth_tracker() == 5);
}

TEST_CASE("scaler/state_machine: an overflow skips the step, halves the scale and leaves no trace") {
  const Tensor a = leaf({1, 2, 3}), b = leaf({1, 2, 3});
  optim::AdamW scaled({a}), plain({b});
  GradScaler scaler;
  const auto plain_step = [&](double gradient) {
    plain.zero_grad();
    sum(b * gradient).backward();
    plain.step();
  };
  scaled_step(scaler, scaled, a, 0.5);
  plain_step(0.5);
  const auto before = values(a);
  scaled_step(scaler, scaled, a, kInf);
  CHECK(values(a) == before);
  CHECK(scaler.get_scale() == 32768.0);
  CHECK(scaler.get_growth_tracker() == 0);
  CHECK(scaled.state_dict().at("state.0.step").item<double>() == 1.0);
  scaled_step(scaler, scaled, a, std::nan(""));
  CHECK(scaler.get_scale() == 16384.0);
  scaled_step(scaler, scaled, a, 0.25);  // bias correction continues as if nothing had happened
  plain_step(0.25);
  CHECK(values(a) == values(b));
  CHECK(scaled.state_dict().at("state.0.step").item<double>() == 2.0);
}

TEST_CASE("scaler/state_machine: a first step that is skipped leaves momentum fresh") {
  const Tensor a = leaf({1, 2}), b = leaf({1, 2});
  const optim::SGDOptions options{.lr = 0.1, .momentum = 0.9, .dampening = 0.5};
  optim::SGD scaled({a}, options), plain({b}, options);
  GradScaler scaler;
  scaled_step(scaler, scaled, a, kInf);
  for (int i = 0; i < 3; ++i) {
    scaled_step(scaler, scaled, a, 1.0 + i);
    plain.zero_grad();
    sum(b * (1.0 + i)).backward();
    plain.step();
    CHECK(values(a) == values(b));
  }
}

TEST_CASE("scaler/state_machine: the scale grows after growth_interval good steps in a row") {
  const Tensor w = leaf({1});
  optim::SGD opt({w});
  GradScaler scaler({.init_scale = 8, .growth_interval = 3});
  for (int i = 0; i < 2; ++i) scaled_step(scaler, opt, w, 1);
  CHECK(scaler.get_scale() == 8.0);
  scaled_step(scaler, opt, w, 1);
  CHECK(scaler.get_scale() == 16.0);
  CHECK(scaler.get_growth_tracker() == 0);
  scaled_step(scaler, opt, w, 1);
  scaled_step(scaler, opt, w, kInf);
  CHECK(scaler.get_scale() == 8.0);
  for (int i = 0; i < 2; ++i) scaled_step(scaler, opt, w, 1);
  CHECK(scaler.get_scale() == 8.0);
}

TEST_CASE("scaler/state_machine: the scale stays finite and does not fall below its floor") {
  const Tensor w = leaf({1});
  optim::SGD opt({w});
  GradScaler high({.init_scale = 0x1p127, .growth_interval = 1});
  scaled_step(high, opt, w, 1e-30);
  CHECK(high.get_scale() == 0x1p127);
  GradScaler low({.init_scale = 4});
  for (int i = 0; i < 5; ++i) scaled_step(low, opt, w, kInf);
  CHECK(low.get_scale() == 1.0);
}

TEST_CASE("scaler/state_machine: unscale_ once, before step; clipping sees true gradients") {
  const Tensor w = leaf({3, 4});
  optim::SGD opt({w}, {.lr = 1.0});
  GradScaler scaler;
  scaler.scale(sum(w * w) * 0.5).backward();
  scaler.unscale_(opt);
  CHECK(values(w.grad()) == std::vector<float>{3, 4});
  CHECK(optim::clip_grad_norm_({w}, 1.0).item<float>() == 5.f);
  CHECK_THROWS_WITH_AS(scaler.unscale_(opt), doctest::Contains("already called"), GradError);
  scaler.step(opt);
  CHECK(values(w)[0] == approx(3 - 0.6, {.relative = 1e-6}));
  CHECK_THROWS_WITH_AS(scaler.step(opt), doctest::Contains("already called"), GradError);
  CHECK_THROWS_WITH_AS(scaler.unscale_(opt), doctest::Contains("after step()"), GradError);
  scaler.update();
  CHECK_THROWS_WITH_AS(scaler.update(), doctest::Contains("nothing was checked"), GradError);
}

TEST_CASE("scaler/state_machine: several optimizers share one scale, an overflow skips only its own") {
  const Tensor a = leaf({1}), b = leaf({1});
  optim::SGD first({a}, {.lr = 1.0}), second({b}, {.lr = 1.0});
  GradScaler scaler;
  scaler.scale(sum(a * kInf) + sum(b * 0.5)).backward();
  scaler.step(first);
  scaler.step(second);
  CHECK(scaler.found_inf(first));
  CHECK_FALSE(scaler.found_inf(second));
  scaler.update();
  CHECK(values(a)[0] == 1.0f);
  CHECK(values(b)[0] == 0.5f);
  CHECK(scaler.get_scale() == 32768.0);
}

TEST_CASE("scaler/state_machine: float16 gradients and missing gradients are refused") {
  const Tensor half = tensor<double>({1.0}).to(kHalf).requires_grad_(), none = leaf({1});
  optim::SGD of_half({half}), of_none({none});
  GradScaler scaler;
  scaler.scale(sum(half)).backward();
  CHECK_THROWS_WITH_AS(scaler.unscale_(of_half), doctest::Contains("is float16"), ValueError);
  CHECK_THROWS_WITH_AS(scaler.step(of_none), doctest::Contains("no parameter of this SGD has a gradient"), GradError);
}

TEST_CASE("scaler/state_machine: twenty skips in a row end training with the parameter's name") {
  const Tensor fine = leaf({1}), bad = leaf({1});
  optim::SGD opt(std::vector<Parameter>{{"fine", fine}, {"bad.weight", bad}});
  GradScaler scaler;
  const auto diverge = [&] {
    for (int i = 0; i < 20; ++i) {
      opt.zero_grad();
      scaler.scale(sum(fine) + sum(bad * kInf)).backward();
      scaler.step(opt);
      if (i == 19) {
        CHECK_THROWS_WITH_AS(scaler.update(), doctest::Contains("that of \"bad.weight\" (inf)"), LossDiverged);
      } else {
        scaler.update();
      }
    }
  };
  diverge();
}

TEST_CASE("scaler/state_machine: clipping, which spreads a NaN over all gradients, does not hide its origin") {
  const Tensor fine = leaf({1}), bad = leaf({1});
  const std::vector<Parameter> parameters{{"fine", fine}, {"bad.weight", bad}};
  optim::SGD opt(parameters);
  GradScaler scaler({.max_skips = 4});
  const auto step = [&] {
    opt.zero_grad();
    scaler.scale(sum(fine) + sum(bad * std::nan(""))).backward();
    scaler.unscale_(opt);
    optim::clip_grad_norm_(parameters, 1.0);
    CHECK(std::isnan(values(fine.grad())[0]));
    scaler.step(opt);
    scaler.update();
  };
  for (int i = 0; i < 3; ++i) step();
  CHECK_THROWS_WITH_AS(step(), doctest::Contains("the first is that of \"bad.weight\" (nan)"), LossDiverged);
  CHECK(values(fine)[0] == 1.0f);
}

TEST_CASE("scaler/state_machine: a good step between skips resets their count") {
  const Tensor w = leaf({1});
  optim::SGD opt({w});
  GradScaler scaler({.max_skips = 4});
  for (int i = 0; i < 12; ++i) scaled_step(scaler, opt, w, i % 4 == 3 ? 1.0 : kInf);
  scaled_step(scaler, opt, w, kInf);
  CHECK(scaler.get_growth_tracker() == 0);
}

TEST_CASE("scaler/state_machine: loops that decide about the step get found-inf as a tensor") {
  const Tensor w = leaf({1}), idle = leaf({1});
  optim::SGD opt({w}, {.lr = 1.0});
  GradScaler scaler;
  CHECK_FALSE(scaler.unscale_(std::vector<Parameter>{{"idle", idle}}).defined());
  scaler.update_with({});
  CHECK(scaler.get_growth_tracker() == 1);
  for (const double gradient : {0.5, kInf}) {
    opt.zero_grad();
    scaler.scale(sum(w * gradient)).backward();
    const Tensor found = scaler.unscale_(opt.parameters());
    CHECK(found.item<float>() == (gradient == kInf ? 1.0f : 0.0f));
    opt.step_unless(found);
    scaler.update_with(found);
  }
  CHECK(values(w)[0] == 0.5f);
  CHECK(scaler.get_scale() == 32768.0);
}

TEST_CASE("scaler/state_machine: found-inf is one number of any shape and type") {
  for (const Shape& sizes : {Shape{}, Shape{1}, Shape{1, 1}})
    for (const DType type : {kFloat32, kFloat64, kInt64, kBool}) {
      const Tensor w = leaf({1});
      optim::SGD opt({w}, {.lr = 1.0});
      GradScaler scaler;
      for (const int found : {0, 1, 0}) {
        w.set_grad(full({1}, 0.25, like(w)));
        const Tensor flag = full(sizes, found, {.dtype = type});
        opt.step_unless(flag);
        scaler.update_with(flag);
      }
      CHECK(values(w)[0] == 0.5f);
      CHECK(scaler.get_scale() == 32768.0);
    }
  const Tensor w = leaf({1});
  optim::SGD opt({w});
  CHECK_THROWS_WITH_AS(opt.step_unless(zeros({2})), doctest::Contains("[SGD] found_inf is (2,); one number is needed"),
                       ShapeError);
  GradScaler scaler;
  CHECK_THROWS_WITH_AS(scaler.update_with(zeros({0})), doctest::Contains("found_inf is (0,)"), ShapeError);
}

TEST_CASE("scaler/state_machine: a loaded state continues") {
  const Tensor w = leaf({1});
  optim::SGD opt({w});
  GradScaler scaler({.growth_interval = 5});
  scaled_step(scaler, opt, w, kInf);
  scaled_step(scaler, opt, w, 1);
  const StateDict state = scaler.state_dict();
  GradScaler other;
  other.load_state_dict(state);
  CHECK(other.get_scale() == 32768.0);
  CHECK(other.get_growth_tracker() == 1);
  for (int i = 0; i < 4; ++i) scaled_step(other, opt, w, 1);
  CHECK(other.get_scale() == 65536.0);
  CHECK_THROWS_WITH_AS(other.load_state_dict({}), doctest::Contains("lacks \"scale\""), StateError);
}

TEST_CASE("scaler/state_machine: if disabled, everything passes through") {
  const Tensor w = leaf({1});
  optim::SGD opt({w}, {.lr = 1.0});
  GradScaler scaler({.enabled = false});
  const Tensor loss = sum(w);
  CHECK(scaler.scale(loss).is_same(loss));
  loss.backward();
  scaler.unscale_(opt);
  scaler.step(opt);
  scaler.update();
  CHECK(values(w)[0] == 0.0f);
  CHECK(scaler.get_scale() == 1.0);
  CHECK(scaler.state_dict().size() == 0);
  CHECK_THROWS_WITH_AS(GradScaler({.growth_factor = 1.0}), doctest::Contains("growth_factor 1"), ValueError);
}

TEST_CASE("scaler/state_machine: non-default factors are saved with the state") {
  const Tensor w = leaf({1});
  optim::SGD opt({w});
  const GradScaler first({.init_scale = 64, .growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 2});
  GradScaler second;
  second.load_state_dict(first.state_dict());
  scaled_step(second, opt, w, kInf);
  CHECK(second.get_scale() == 16.0);
  scaled_step(second, opt, w, 1);
  scaled_step(second, opt, w, 1);
  CHECK(second.get_scale() == 48.0);
}

TEST_CASE("scaler/state_machine: the scale falls if any of several optimizers overflows") {
  for (const std::size_t bad : {0, 1, 2}) {
    const std::vector<Tensor> w = {leaf({1}), leaf({1}), leaf({1})};
    std::vector<optim::SGD> optimizers;
    Tensor loss = zeros({});
    for (std::size_t i = 0; i < w.size(); ++i) {
      optimizers.emplace_back(std::vector<Tensor>{w[i]});
      loss = loss + sum(w[i] * (i == bad ? kInf : 0.5));
    }
    GradScaler scaler({.init_scale = 8});
    scaler.scale(loss).backward();
    for (optim::SGD& o : optimizers) scaler.step(o);
    scaler.update();
    CHECK(scaler.get_scale() == 4.0);
  }
}

TEST_CASE("scaler/state_machine: a gradient of other strides is unscaled element by element") {
  const Tensor w = zeros({2, 3}).requires_grad_(), wide = zeros({2, 3}).requires_grad_();
  optim::SGD opt({w, wide}, {.lr = 1.0});
  GradScaler scaler({.init_scale = 2});
  static_cast<void>(scaler.scale(sum(w)));
  w.set_grad(from_data<float>({2, 8, 4, 10, 6, 12}, {3, 2}).t());
  wide.set_grad(from_data<float>({2, 4, 6}, {1, 3}).expand({2, 3}));
  scaler.step(opt);
  CHECK(values(w) == std::vector<float>{-1, -2, -3, -4, -5, -6});
  CHECK(values(wide) == std::vector<float>{-1, -2, -3, -1, -2, -3});
}
