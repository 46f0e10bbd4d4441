#include "support/comparison.h"
#include "support/stored_values.h"
#include "support/tolerance.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/core/parallel.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

using namespace levin;
using namespace levin::test;

namespace {

std::string thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

/// Compares ten steps with the run stored by make_values.py.
void check_against_pytorch(const std::string& name, const StoredValues& stored, const MakeOptimizer& make,
                           const std::vector<Shape>& sizes = {{7}, {20}}) {
  const auto values = [&](std::size_t i, int64_t salt) {
    return formula(sizes[i].numel(), salt).to(DType::f64).reshape(sizes[i]);
  };
  const std::vector<Tensor> params = {values(0, 1).requires_grad_(), values(1, 2).requires_grad_()};
  const auto optimizer = make(params);
  for (int step = 0; step < 10; ++step) {
    for (std::size_t i = 0; i < 2; ++i)
      params[i].set_grad(params[i].detach() * 0.5 + values(i, 100 + 10 * step + static_cast<int64_t>(i)));
    if (step == 4) params[1].set_grad({});
    optimizer->step();
    for (std::size_t i = 0; i < 2; ++i) {
      const auto expected = stored.find(fmt::format("{}/step{}/param{}", name, step, i));
      if (expected == stored.end()) continue;
      // Each step adds a few rounding errors of values around 1.
      const std::string wrong = compare(params[i].detach(), expected->second, {.ulps = 8, .scale = 1}, 10);
      CHECK_MESSAGE(wrong.empty(), name, " step ", step, ": ", wrong);
    }
  }
}

template <class O>
MakeOptimizer make(const typename O::Options& options) {
  return [options](const std::vector<Tensor>& params) { return std::make_unique<O>(params, options); };
}

}  // namespace

TEST_CASE("ten steps of each optimizer match PyTorch's") {
  const StoredValues stored = read_stored_values("optimizers.txt");
  CHECK(stored.size() == 30 * 3 * 2 + 2 + 3 * 5 * 2 + 5 * 6);
  check_against_pytorch("sgd", stored, make<optim::SGD>({.lr = 0.1}));
  check_against_pytorch("sgd_momentum", stored,
                        make<optim::SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.05}));
  check_against_pytorch("sgd_nesterov", stored,
                        make<optim::SGD>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}));
  check_against_pytorch("sgd_maximize", stored, make<optim::SGD>({.lr = 0.1, .momentum = 0.5, .maximize = true}));
  check_against_pytorch("adam", stored, make<optim::Adam>({.lr = 0.05}));
  check_against_pytorch("adam_decay", stored,
                        make<optim::Adam>({.lr = 0.05, .betas = {0.8, 0.95}, .eps = 1e-6, .weight_decay = 0.1}));
  check_against_pytorch("adam_amsgrad", stored, make<optim::Adam>({.lr = 0.05, .amsgrad = true}));
  check_against_pytorch("adamw", stored, make<optim::AdamW>({.lr = 0.05, .weight_decay = 0.1}));
  check_against_pytorch("adamw_maximize", stored, make<optim::AdamW>({.lr = 0.05, .amsgrad = true, .maximize = true}));
  check_against_pytorch("rmsprop", stored, make<optim::RMSprop>({.lr = 0.05}));
  check_against_pytorch("rmsprop_momentum", stored,
                        make<optim::RMSprop>({.lr = 0.05, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.8}));
  check_against_pytorch(
      "rmsprop_centered", stored,
      make<optim::RMSprop>({.lr = 0.05, .alpha = 0.4, .eps = 1e-6, .centered = true, .maximize = true}));
  check_against_pytorch("adagrad", stored, make<optim::Adagrad>({.lr = 0.05}));
  check_against_pytorch("adagrad_decay", stored,
                        make<optim::Adagrad>({.lr = 0.05,
                                              .lr_decay = 0.1,
                                              .weight_decay = 0.1,
                                              .initial_accumulator_value = 0.2,
                                              .eps = 1e-6,
                                              .maximize = true}));
  check_against_pytorch("adadelta", stored, make<optim::Adadelta>({}));
  check_against_pytorch(
      "adadelta_decay", stored,
      make<optim::Adadelta>({.lr = 0.5, .rho = 0.8, .eps = 1e-4, .weight_decay = 0.1, .maximize = true}));
  check_against_pytorch("adamax", stored, make<optim::Adamax>({.lr = 0.05}));
  check_against_pytorch(
      "adamax_decay", stored,
      make<optim::Adamax>({.lr = 0.05, .betas = {0.4, 0.9}, .eps = 1e-3, .weight_decay = 0.1, .maximize = true}));
  check_against_pytorch("radam", stored, make<optim::RAdam>({.lr = 0.05}));
  check_against_pytorch("radam_decay", stored,
                        make<optim::RAdam>({.lr = 0.05, .betas = {0.8, 0.95}, .eps = 1e-4, .weight_decay = 0.1}));
  check_against_pytorch(
      "radam_decoupled", stored,
      make<optim::RAdam>({.lr = 0.05, .weight_decay = 0.1, .decoupled_weight_decay = true, .maximize = true}));
  check_against_pytorch("rprop", stored, make<optim::Rprop>({}));
  check_against_pytorch("rprop_narrow", stored,
                        make<optim::Rprop>({.lr = 0.05,
                                            .eta_minus = 0.4,
                                            .eta_plus = 1.5,
                                            .step_size_min = 0.03,
                                            .step_size_max = 0.1,
                                            .maximize = true}));
  check_against_pytorch("asgd", stored, make<optim::ASGD>({.lr = 0.05}));
  check_against_pytorch(
      "asgd_average", stored,
      make<optim::ASGD>({.lr = 0.05, .lambd = 0.1, .alpha = 0.5, .t0 = 3, .weight_decay = 0.1, .maximize = true}));
  check_against_pytorch("nadam", stored, make<optim::NAdam>({}));
  check_against_pytorch("nadam_decay", stored,
                        make<optim::NAdam>({.lr = 0.05,
                                            .betas = {0.8, 0.95},
                                            .eps = 1e-4,
                                            .weight_decay = 0.1,
                                            .momentum_decay = 0.1,
                                            .maximize = true}));
  check_against_pytorch("nadam_decoupled", stored,
                        make<optim::NAdam>({.lr = 0.05, .weight_decay = 0.1, .decoupled_weight_decay = true}));
  const std::vector<Shape> matrices = {{7, 1}, {4, 5}};
  check_against_pytorch("muon", stored, make<optim::Muon>({.lr = 0.05}), matrices);
  check_against_pytorch("muon_plain", stored,
                        make<optim::Muon>({.lr = 0.05,
                                           .weight_decay = 0.2,
                                           .momentum = 0.8,
                                           .nesterov = false,
                                           .ns_steps = 3,
                                           .match_rms_adamw = true}),
                        matrices);
}

TEST_CASE("Lion steps by the sign of the interpolated gradient") {
  const Tensor w = tensor({1.0, -2.0, 0.5}, {.dtype = DType::f64}).requires_grad_();
  optim::Lion lion({w}, {.lr = 0.125, .betas = {0.5, 0.75}, .weight_decay = 0.5});
  // Chen et al. 2023, algorithm 2: the decay multiplies the weight by 1 - 0.125 * 0.5 = 0.9375.
  w.set_grad(tensor({2.0, -1.0, 0.0}, {.dtype = DType::f64}));
  lion.step();
  CHECK(w.to_vector<double>() == std::vector<double>{0.8125, -1.75, 0.46875});
  // The average is (0.5, -0.25, 0); the second direction 0.5 m + 0.5 g = (-0.25, -0.125, 1).
  w.set_grad(tensor({-1.0, 0.0, 2.0}, {.dtype = DType::f64}));
  lion.step();
  CHECK(w.to_vector<double>() == std::vector<double>{0.88671875, -1.515625, 0.314453125});
  CHECK(lion.state_dict().at("state.0.exp_avg").to_vector<double>() == std::vector<double>{0.125, -0.1875, 0.5});
}

TEST_CASE("ASGD keeps PyTorch's average") {
  const StoredValues stored = read_stored_values("optimizers.txt");
  const Tensor w = formula(20, 2).to(DType::f64).requires_grad_();
  optim::ASGD asgd({w}, {.lr = 0.05, .lambd = 0.1, .alpha = 0.5, .t0 = 3, .weight_decay = 0.1, .maximize = true});
  for (int step = 0; step < 10; ++step) {
    w.set_grad(w.detach() * 0.5 + formula(20, 101 + 10 * step).to(DType::f64));
    if (step == 4) w.set_grad({});
    asgd.step();
  }
  CHECK(compare(asgd.state_dict().at("state.0.ax"), stored.at("asgd_average/ax"), {.ulps = 8, .scale = 1}, 10) == "");
}

TEST_CASE("a learning rate may stand alone, as in PyTorch") {
  const std::vector<Tensor> w = {ones({1}).requires_grad_()};
  CHECK(optim::SGD(w, 0.5).param_groups()[0]["lr"] == 0.5);
  CHECK(optim::Adam(w, 0.25).param_groups()[0]["lr"] == 0.25);
  CHECK(optim::AdamW(w, 1e-2).param_groups()[0]["lr"] == 1e-2);
  CHECK(optim::RMSprop(w, 0.125).param_groups()[0]["lr"] == 0.125);
  CHECK(optim::Adagrad(w, 0.5).param_groups()[0]["lr"] == 0.5);
  CHECK(optim::Adadelta(w, 0.5).param_groups()[0]["lr"] == 0.5);
  CHECK(optim::Adamax(w, 0.5).param_groups()[0]["lr"] == 0.5);
  CHECK(optim::RAdam(w, 0.5).param_groups()[0]["lr"] == 0.5);
  CHECK(optim::Rprop(w, 0.5).param_groups()[0]["lr"] == 0.5);
  CHECK(optim::ASGD(w, 0.5).param_groups()[0]["lr"] == 0.5);
  CHECK(optim::Lion(w, 0.5).param_groups()[0]["lr"] == 0.5);
  CHECK(optim::AdamW(w, {}).param_groups()[0]["lr"] == 1e-3);
}

TEST_CASE("defaults match PyTorch's") {
  const std::vector<Tensor> w = {ones({1}).requires_grad_()};
  CHECK(optim::SGD(w).param_groups()[0].settings == optim::Settings{{"lr", 1e-3},
                                                                    {"momentum", 0},
                                                                    {"dampening", 0},
                                                                    {"weight_decay", 0},
                                                                    {"nesterov", 0},
                                                                    {"maximize", 0},
                                                                    {"capturable", 0}});
  const optim::Settings adam{{"lr", 1e-3},        {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8},
                             {"weight_decay", 0}, {"amsgrad", 0}, {"maximize", 0},  {"capturable", 0}};
  CHECK(optim::Adam(w).param_groups()[0].settings == adam);
  CHECK(optim::AdamW(w).param_groups()[0]["weight_decay"] == 1e-2);
  CHECK(optim::RMSprop(w).param_groups()[0].settings == optim::Settings{{"lr", 1e-2},
                                                                        {"alpha", 0.99},
                                                                        {"eps", 1e-8},
                                                                        {"weight_decay", 0},
                                                                        {"momentum", 0},
                                                                        {"centered", 0},
                                                                        {"maximize", 0},
                                                                        {"capturable", 0}});
  CHECK(optim::Adagrad(w).param_groups()[0].settings == optim::Settings{{"lr", 1e-2},
                                                                        {"lr_decay", 0},
                                                                        {"weight_decay", 0},
                                                                        {"initial_accumulator_value", 0},
                                                                        {"eps", 1e-10},
                                                                        {"maximize", 0},
                                                                        {"capturable", 0}});
}

TEST_CASE("parameter groups have their own settings, which can change") {
  const Tensor a = zeros({2}).requires_grad_(), b = zeros({2}).requires_grad_(), c = zeros({2}).requires_grad_();
  optim::SGD opt(
      std::vector<optim::ParamGroup>{{.params = {{"a", a}}}, {.params = {{"b", b}}, .settings = {{"lr", 0.5}}}},
      {.lr = 0.1});
  opt.add_param_group({.params = {{"c", c}}, .settings = {{"weight_decay", 0.1}}});
  for (const Tensor& t : {a, b, c}) t.set_grad(ones({2}));
  opt.step();
  CHECK(a.to_vector<float>()[0] == -0.1f);
  CHECK(b.to_vector<float>()[0] == -0.5f);
  opt.param_groups()[0]["lr"] = 2;
  opt.step();
  CHECK(a.to_vector<float>()[0] == approx(-2.1, {.relative = 1e-6}));
  CHECK(opt.parameters().size() == 3);
  CHECK(mentions(thrown([&] {
                   opt.add_param_group({.params = {{"d", ones({1})}}, .settings = {{"beta1", 0.1}}});
                 }),
                 "[SGD] there is no setting \"beta1\". There are: capturable, dampening, lr,"));
  CHECK(mentions(thrown([&] { opt.add_param_group({.params = {{"again", a}}}); }), "\"again\" is given twice"));
  CHECK(mentions(thrown([&] { opt.add_param_group({}); }), "empty"));
  CHECK(mentions(thrown([&] { opt.add_param_group({.params = {{"d", a * 2.0}}}); }), "\"d\" cannot be optimized"));
}

TEST_CASE("settings out of range are refused") {
  const std::vector<Tensor> w = {ones({1}).requires_grad_()};
  CHECK(mentions(thrown([&] { optim::SGD(w, {.lr = -1}); }), "[SGD] lr is -1. Give a value of at least 0"));
  CHECK(mentions(thrown([&] { optim::SGD(w, {.nesterov = true}); }), "nesterov needs a momentum"));
  CHECK(mentions(thrown([&] { optim::Adam(w, {.betas = {1.0, 0.9}}); }), "[Adam] beta1 is 1"));
  CHECK(mentions(thrown([&] { optim::AdamW(w, {.eps = NAN}); }), "[AdamW] eps is nan"));
  CHECK(mentions(thrown([&] { optim::RMSprop(w, {.alpha = -0.5}); }), "[RMSprop] alpha is -0.5"));
  CHECK(mentions(thrown([&] { optim::Adagrad(w, {.initial_accumulator_value = -1}); }),
                 "[Adagrad] initial_accumulator_value is -1"));
}

TEST_CASE("a step is an unrecorded in-place edit and skips parameters without a gradient") {
  const Tensor w = ones({3}).requires_grad_(), idle = ones({3}).requires_grad_();
  optim::SGD opt(std::vector<Tensor>{w, idle}, {.lr = 0.5});
  const Tensor loss = (w * w).sum();
  loss.backward({}, {.retain_graph = true});
  opt.step();
  CHECK(w.to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK(idle.to_vector<float>() == std::vector<float>{1, 1, 1});
  CHECK(w.is_leaf());
  CHECK_THROWS_AS(loss.backward(), GradError);
  opt.zero_grad();
  CHECK(!w.grad().defined());
  w.set_grad(ones({3}));
  opt.zero_grad(false);
  CHECK(w.grad().to_vector<float>() == std::vector<float>{0, 0, 0});
}

TEST_CASE("optim/set_to_none_skips_momentum_update") {
  // After one step with a gradient, a gradient of zeros lets momentum move the weight, and no gradient leaves it
  // unchanged.
  const auto after = [](bool set_to_none) {
    const Tensor w = ones({2}).requires_grad_();
    optim::SGD optimizer({w}, {.lr = 0.5, .momentum = 0.5});
    w.set_grad(full({2}, 1.f));
    optimizer.step();  // momentum 1, weight 0.5
    optimizer.zero_grad(set_to_none);
    CHECK(w.grad().defined() != set_to_none);
    optimizer.step();  // momentum 0.5, weight 0.25, or nothing
    return w.to_vector<float>();
  };
  CHECK(after(true) == std::vector<float>{0.5f, 0.5f});
  CHECK(after(false) == std::vector<float>{0.25f, 0.25f});
  const Tensor w = ones({2}).requires_grad_();
  optim::SGD optimizer({w});
  w.set_grad(ones({2}));
  optimizer.zero_grad();  // PyTorch's default
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("a closure is evaluated with recording on") {
  const Tensor w = ones({1}).requires_grad_();
  optim::SGD opt(std::vector<Tensor>{w}, {.lr = 0.1});
  no_grad guard;
  const Tensor loss = opt.step([&] {
    opt.zero_grad();
    const Tensor l = square(w).sum();
    l.backward();
    return l;
  });
  CHECK(loss.item<float>() == 1.f);
  CHECK(w.item<float>() == approx(0.8, {.relative = 1e-6}));
}

TEST_CASE("a non-contiguous parameter is updated in place") {
  const Tensor base = zeros({2, 3});
  const Tensor w = base.t().detach().requires_grad_();
  w.set_grad(from_data<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  optim::Adam opt(std::vector<Tensor>{w}, {.lr = 0.1});
  opt.step();
  for (const float v : base.to_vector<float>()) CHECK(v == approx(-0.1, {.relative = 1e-6}));
}

TEST_CASE("on the CPU capturable only changes where the count is stored, and older states load without it") {
  const auto run = [](const MakeOptimizer& make_optimizer, bool reload) {
    const std::vector<Tensor> params = {formula(50, 1).requires_grad_(), formula(3, 2).requires_grad_()};
    auto opt = make_optimizer(params);
    for (int step = 0; step < 5; ++step) {
      for (const Tensor& p : params) p.set_grad(formula(p.numel(), 10 + step));
      if (step == 3) params[1].set_grad({});
      opt->param_groups()[0]["lr"] = 0.1 / (1 + step);
      if (reload && step == 2) {
        StateDict saved;
        for (const auto& [name, value] : opt->state_dict())
          if (name != "param_groups.0.capturable") saved.set(name, value.clone());
        opt = make_optimizer(params);
        opt->load_state_dict(saved);
      }
      opt->step();
    }
    const StateDict state = opt->state_dict();
    CHECK(state.at("state.0.step").item<double>() == 5);
    CHECK(state.at("state.1.step").item<double>() == 4);
    return std::pair(params[0].to_vector<float>(), params[1].to_vector<float>());
  };
  for (const bool reload : {false, true}) {
    CHECK(run(make<optim::Adam>({.capturable = true}), reload) == run(make<optim::Adam>({}), reload));
    CHECK(run(make<optim::AdamW>({.amsgrad = true, .capturable = true}), reload) ==
          run(make<optim::AdamW>({.amsgrad = true}), false));
    CHECK(run(make<optim::SGD>({.momentum = 0.9, .dampening = 0.5, .capturable = true}), reload) ==
          run(make<optim::SGD>({.momentum = 0.9, .dampening = 0.5}), reload));
  }
}

TEST_CASE("a step has the same bits with any number of threads") {
  const int before = num_threads();
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<Tensor> params;
    for (int i = 0; i < 40; ++i) params.push_back(formula(i * i * 53 + 1, i).requires_grad_());
    optim::Adam opt(params);
    for (int step = 0; step < 2; ++step) {
      for (const Tensor& p : params) p.set_grad(formula(p.numel(), 77 + step));
      opt.step();
    }
    std::vector<float> all;
    for (const Tensor& p : params)
      for (const float v : p.to_vector<float>()) all.push_back(v);
    if (threads == 1) first = all;
    CHECK(all == first);
  }
  set_num_threads(before);
}

TEST_CASE("gradients are clipped by their common norm") {
  const Tensor a = zeros({2}).requires_grad_(), b = zeros({1, 1}).requires_grad_(), idle = zeros({1}).requires_grad_();
  const auto fill = [&] {
    a.set_grad(from_data<float>({3, 0}, {2}));
    b.set_grad(from_data<float>({4}, {1, 1}));
  };
  const std::vector<Tensor> all = {a, b, idle};
  fill();
  CHECK(optim::clip_grad_norm_(all, 2.5).item<float>() == 5.f);
  CHECK(a.grad().to_vector<float>()[0] == approx(1.5, {.relative = 1e-6}));
  CHECK(b.grad().item<float>() == approx(2.0, {.relative = 1e-6}));
  fill();
  CHECK(optim::clip_grad_norm_(all, 5.1).item<float>() == 5.f);
  CHECK(a.grad().to_vector<float>()[0] == 3.f);
  CHECK(optim::clip_grad_norm_(all, 2.0, {.norm_type = INFINITY}).item<float>() == 4.f);
  CHECK(b.grad().item<float>() == approx(2.0, {.relative = 1e-6}));
  fill();
  CHECK(optim::clip_grad_norm_(all, 3.5, {.norm_type = 1}).item<float>() == 7.f);
  CHECK(b.grad().item<float>() == approx(2.0, {.relative = 1e-6}));
  b.set_grad(full({1, 1}, NAN));
  CHECK(mentions(thrown([&] { optim::clip_grad_norm_(all, 1, {.error_if_nonfinite = true}); }),
                 "the norm of the 2 gradients is nan"));
  fill();
  optim::clip_grad_value_(all, 1.0);
  CHECK(a.grad().to_vector<float>() == std::vector<float>{1, 0});
  CHECK(b.grad().item<float>() == 1.f);
  CHECK(optim::clip_grad_norm_(std::vector<Tensor>{idle}, 1.0).item<float>() == 0.f);
}

TEST_CASE("gradients with other strides update the right elements") {
  const auto run = [](auto make_one) {
    const Tensor w = zeros({2, 3}).requires_grad_(), dense = zeros({2, 3}).requires_grad_();
    for (int step = 0; step < 2; ++step) {
      const Tensor turned = from_data<float>({1, 4, 2, 5, 3, 6}, {3, 2}).t(), row = ones({1, 3}).expand({2, 3});
      w.set_grad(step == 0 ? turned : row);
      dense.set_grad((step == 0 ? turned : row).contiguous());
      make_one(w);
      make_one(dense);
    }
    CHECK(w.to_vector<float>() == dense.to_vector<float>());
    CHECK(w.to_vector<float>()[1] != w.to_vector<float>()[3]);
  };
  run([](const Tensor& w) { optim::SGD({w}, {.lr = 0.5}).step(); });
  run([](const Tensor& w) { optim::SGD({w}, {.lr = 0.5, .momentum = 0.9}).step(); });
  run([](const Tensor& w) { optim::AdamW({w}, {.lr = 0.5, .eps = 1}).step(); });
}

TEST_CASE("clipping by value also applies to negative values") {
  const Tensor w = zeros({4}).requires_grad_();
  w.set_grad(from_data<float>({-3, -0.5f, 0.5f, 3}, {4}));
  optim::clip_grad_value_(std::vector<Tensor>{w}, 1.0);
  CHECK(w.grad().to_vector<float>() == std::vector<float>{-1, -0.5f, 0.5f, 1});
}
