// State dictionaries of optimizers.
#include "support/stored_values.h"

#include <levin/autograd/ops.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <functional>
#include <memory>

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

}  // namespace

TEST_CASE("a loaded state continues bit for bit") {
  const auto run = [](auto fresh, bool restart) {
    const Tensor w = formula(50, 1).requires_grad_(), v = formula(70, 2).requires_grad_();
    const std::vector<Parameter> params{{"w", w}, {"v.weight", v}};
    std::unique_ptr<optim::Optimizer> opt = fresh(params, 0.01);
    for (int step = 0; step < 6; ++step) {
      if (restart && step == 3) {
        StateDict saved;
        for (const auto& [name, value] : opt->state_dict()) saved.set(name, value.clone());
        opt = fresh(params, 5.0);
        opt->load_state_dict(saved);
      }
      w.set_grad(formula(50, 10 + step));
      v.set_grad(formula(70, 20 + step));
      opt->step();
    }
    return std::pair(w.to_vector<float>(), v.to_vector<float>());
  };
  const auto check = [&](auto fresh) { CHECK(run(fresh, true) == run(fresh, false)); };
  using Params = std::vector<Parameter>;
  check([](const Params& p, double lr) {
    auto opt = std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = lr, .amsgrad = true});
    if (lr < 1) opt->param_groups()[0]["beta1"] = 0.7;
    return opt;
  });
  check([](const Params& p, double lr) {
    return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions{.lr = lr, .momentum = 0.9, .centered = true});
  });
  check([](const Params& p, double lr) {
    // A loaded sum is not initialised again.
    return std::make_unique<optim::Adagrad>(
        p, optim::AdagradOptions{.lr = lr, .lr_decay = 0.1, .initial_accumulator_value = 0.25});
  });
  check([](const Params& p, double lr) { return std::make_unique<optim::Rprop>(p, lr); });  // sizes are not set again
  check([](const Params& p, double lr) {
    return std::make_unique<optim::ASGD>(p, optim::ASGDOptions{.lr = lr, .t0 = 1});
  });
}

TEST_CASE("state dictionaries have PyTorch's slots under the parameters' names; wrong ones are refused whole") {
  const Tensor w = ones({2}).requires_grad_();
  optim::Adam opt(std::vector<Parameter>{{"fc1.weight", w}});
  w.set_grad(ones({2}));
  opt.step();
  const StateDict state = opt.state_dict();
  CHECK(state.at("state.fc1.weight.step").item<float>() == 1.f);
  CHECK(state.contains("state.fc1.weight.exp_avg"));
  CHECK(state.contains("state.fc1.weight.exp_avg_sq"));
  CHECK(!state.contains("state.fc1.weight.max_exp_avg_sq"));
  CHECK(state.at("param_groups.0.lr").item<double>() == 1e-3);
  optim::SGD sgd(std::vector<Parameter>{{"fc1.weight", w}}, {.momentum = 0.9});
  CHECK(mentions(thrown([&] { sgd.load_state_dict(state); }),
                 "not one of this SGD: missing: \"param_groups.0.dampening\""));
  StateDict other = state;
  other.set("state.fc1.weight.exp_avg", ones({3}));
  CHECK(mentions(thrown([&] { opt.load_state_dict(other); }), "\"state.fc1.weight.exp_avg\" is (3,) float32 there"));
  other = state;
  other.set("state.fc9.step", ones({}));
  CHECK(mentions(thrown([&] { opt.load_state_dict(other); }), "1 of 12 entries belong to nothing here"));
}

TEST_CASE("each group loads its own settings") {
  const Tensor a = zeros({1}).requires_grad_(), b = zeros({1}).requires_grad_();
  const auto make_one = [&](double first, double second) {
    return optim::SGD(
        std::vector<optim::ParamGroup>{{.params = {{"a", a}}, .settings = {{"lr", first}, {"momentum", 0.5}}},
                                       {.params = {{"b", b}}, .settings = {{"lr", second}, {"weight_decay", 0.25}}}});
  };
  const optim::SGD saved = make_one(0.125, 2);
  optim::SGD loaded = make_one(7, 8);
  loaded.load_state_dict(saved.state_dict());
  for (const std::size_t i : {0, 1}) CHECK(loaded.param_groups()[i].settings == saved.param_groups()[i].settings);
  CHECK(loaded.param_groups()[0]["lr"] == 0.125);
  CHECK(loaded.param_groups()[1]["lr"] == 2);
}

TEST_CASE("skipped steps count neither for a loaded state nor for a parameter added later") {
  const auto make_params = [] { return formula(6, 3).requires_grad_(); };
  const auto step = [](optim::Optimizer& o, const std::vector<Tensor>& params, bool bad) {
    for (const Tensor& p : params) p.set_grad(formula(6, 5));
    o.step_unless(full({}, bad ? 1.f : 0.f));
  };
  const Tensor w = make_params(), other = make_params(), late = make_params(), fresh = make_params();
  optim::AdamW skipped(std::vector<Parameter>{{"w", w}}), plain(std::vector<Parameter>{{"w", other}});
  step(plain, {other}, false);
  StateDict saved;
  for (const auto& [name, t] : plain.state_dict()) saved.set(name, t.clone());
  for (int i = 0; i < 3; ++i) step(skipped, {w}, true);
  skipped.load_state_dict(saved);
  CHECK(skipped.state_dict().at("state.w.step").item<double>() == 1);
  w.detach().copy_(other.detach());
  step(skipped, {w}, false);
  step(plain, {other}, false);
  CHECK(w.to_vector<float>() == other.to_vector<float>());

  for (int i = 0; i < 2; ++i) step(skipped, {w}, true);
  skipped.add_param_group({.params = {{"late", late}}});
  step(skipped, {w, late}, false);
  CHECK(skipped.state_dict().at("state.late.step").item<double>() == 1);
  optim::AdamW one(std::vector<Parameter>{{"w", fresh}});
  step(one, {fresh}, false);
  CHECK(late.to_vector<float>() == fresh.to_vector<float>());
}
