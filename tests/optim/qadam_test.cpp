// QAdam: Adam during warm-up, then a frozen second moment and an external momentum.
#include <doctest/doctest.h>
#include <levin/optim/optim.h>

#include <cmath>

#include "support/comparison.h"

using namespace levin;
using levin::test::approx;

namespace {

struct Problem {
  Parameter p{"p", from_data<float>({1.f, -2.f, 3.f}, {3}).requires_grad_()};
  void gradient(int step) const {
    p.set_grad(from_data<float>({0.3f * static_cast<float>(step), -1.f, 0.01f}, {3}));
  }
};

}  // namespace

TEST_CASE("QAdam: the warm-up matches Adam bit for bit") {
  Problem a, b;
  optim::Adam adam(std::vector<Parameter>{a.p}, {.lr = 0.1, .weight_decay = 0.01});
  optim::QAdam qadam(std::vector<Parameter>{b.p}, {.lr = 0.1, .warmup_steps = 5, .weight_decay = 0.01});
  for (int s = 1; s <= 5; ++s) {
    CHECK_FALSE(qadam.is_frozen());
    a.gradient(s);
    b.gradient(s);
    adam.step();
    qadam.step();
  }
  CHECK(qadam.is_frozen());
  CHECK(a.p.to_vector<float>() == b.p.to_vector<float>());
}

TEST_CASE("QAdam: after the warm-up the formula with a frozen second moment, by hand") {
  Problem q;
  optim::QAdam opt(std::vector<Parameter>{q.p},
                   {.lr = 0.1, .warmup_steps = 3, .betas = {0.8, 0.9}, .weight_decay = 0.5});
  std::vector<double> p = {1, -2, 3}, m(3), v(3);
  for (int s = 1; s <= 8; ++s) {
    q.gradient(s);
    if (opt.is_frozen() && s % 2 == 0) opt.to_momentum();  // otherwise step() does it
    opt.step();
    const double g[] = {0.3 * s, -1, 0.01};
    for (std::size_t i = 0; i < 3; ++i) {
      const double own = g[i] + 0.5 * p[i];
      m[i] = 0.8 * m[i] + 0.2 * own;
      if (s <= 3) v[i] = 0.9 * v[i] + 0.1 * own * own;
      const double correction = 1 - std::pow(0.9, std::min(s, 3));
      p[i] -= 0.1 / (1 - std::pow(0.8, s)) * m[i] / (std::sqrt(v[i] / correction) + 1e-8);
    }
  }
  const auto got = q.p.to_vector<double>();
  for (std::size_t i = 0; i < 3; ++i) CHECK(got[i] == approx(p[i], {.relative = 1e-5}));
}

TEST_CASE("QAdam: all groups end their warm-up with the same step; skipped steps change and count nothing") {
  Problem a, b;
  optim::QAdam opt(std::vector<optim::ParamGroup>{{.params = {Parameter("a", a.p)}}, {.params = {Parameter("b", b.p)}}},
                   {.lr = 0.1, .warmup_steps = 2});
  const Tensor good = zeros({}), bad = ones({});
  int real = 0;
  for (const bool skip : {false, true, false, false, true, true}) {
    a.gradient(1);
    b.gradient(1);
    CHECK(opt.is_frozen() == (real >= 2));
    if (opt.is_frozen()) opt.to_momentum();
    const auto before = b.p.to_vector<float>();
    opt.step_unless(skip ? bad : good);
    CHECK((b.p.to_vector<float>() == before) == skip);
    CHECK(a.p.to_vector<float>() == b.p.to_vector<float>());
    real += skip ? 0 : 1;
    CHECK(opt.state_dict().at("state.a.step").item<double>() == real);
  }
}

TEST_CASE("QAdam: a loaded state continues bit for bit; options out of range are refused") {
  Problem a, b;
  optim::QAdam first(std::vector<Parameter>{a.p}, {.lr = 0.1, .warmup_steps = 2});
  const auto step = [](const Problem& q, optim::QAdam& opt, int s) {
    q.gradient(s);
    if (opt.is_frozen()) opt.to_momentum();
    opt.step();
  };
  for (int s = 1; s <= 3; ++s) step(a, first, s);
  optim::QAdam second(std::vector<Parameter>{b.p}, {.lr = 0.5});
  second.load_state_dict(first.state_dict());
  b.p.detach().copy_(a.p.detach());
  CHECK(second.is_frozen());
  step(a, first, 4);
  step(b, second, 4);
  CHECK(a.p.to_vector<float>() == b.p.to_vector<float>());
  CHECK_THROWS_AS(optim::QAdam(std::vector<Parameter>{a.p}, {.warmup_steps = 0}), ValueError);
}
