// Sharded parameters, gradients and optimizer state compared with DistributedDataParallel and with one rank.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <levin/distributed/fsdp.h>

#include <cmath>
#include <mutex>

#include "distributed/ddp_models.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

using Values = std::vector<double>;
using Names = std::vector<std::string>;

constexpr FullyShardedOptions kSmall{.min_elements = 40};  // of Net: fc1 and fc2 are units, fc3 is the rest

template <class P>
std::unique_ptr<optim::Optimizer> adam_of(const P& parameters) {
  return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.02});
}
template <class P>
std::unique_ptr<optim::Optimizer> sgd_of(const P& parameters) {
  return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
}

struct Case {
  bool adam = false;
  int micro = 1;  // backwards per step; the last one communicates
  double clip = 0;
  FullyShardedOptions options = kSmall;
};

constexpr int kSteps = 5;

template <class Forward, class Clip, class Sync>
void train_steps(const Case& c, optim::Optimizer& opt, const Forward& loss, const Clip& clip, const Sync& sync,
                 const std::function<void()>& zero_grad) {
  for (int s = 0; s < kSteps; ++s) {
    opt.zero_grad();
    zero_grad();
    for (int m = 0; m < c.micro; ++m) {
      sync(m + 1 == c.micro);
      loss(10 * s + m).backward();
    }
    if (c.clip > 0) clip();
    opt.step();
  }
}

Values trained_alone(const Case& c) {
  Net net(1);
  const auto opt = c.adam ? adam_of(net.parameters()) : sgd_of(net.parameters());
  train_steps(
      c, *opt, [&](int i) { return loss_of(net(input(i))); }, [&] { optim::clip_grad_norm_(net.parameters(), c.clip); },
      [](bool) {}, [] {});
  return weights(net);
}

Values trained_ddp(const Case& c, ProcessGroup& group) {
  Net net(1);
  DistributedDataParallel ddp(net, shared(group), small());
  const auto opt = c.adam ? adam_of(net.parameters()) : sgd_of(net.parameters());
  train_steps(
      c, *opt, [&](int i) { return loss_of(ddp(part(input(i), group.rank(), group.size()))); },
      [&] { optim::clip_grad_norm_(net.parameters(), c.clip); }, [&](bool on) { ddp.reducer().set_sync(on); }, [] {});
  return weights(net);
}

Values trained_sharded(const Case& c, ProcessGroup& group) {
  Net net(static_cast<std::uint64_t>(1 + group.rank()));  // rank 0's values are broadcast
  FullyShardedDataParallel fsdp(net, shared(group), c.options);
  const auto opt = c.adam ? adam_of(fsdp.parameters()) : sgd_of(fsdp.parameters());
  train_steps(
      c, *opt, [&](int i) { return loss_of(fsdp(part(input(i), group.rank(), group.size()))); },
      [&] { fsdp.clip_grad_norm_(c.clip); }, [&](bool on) { fsdp.set_sync(on); }, [&] { fsdp.zero_grad(); });
  fsdp.unshard();
  return weights(net);
}

/// Layers of equal size, each a unit.
struct Tower : nn::Module {
  nn::Linear& a = add<nn::Linear>("a", 8, 8);
  nn::Linear& b = add<nn::Linear>("b", 8, 8);
  nn::Linear& c = add<nn::Linear>("c", 8, 8);
  nn::Linear& d = add<nn::Linear>("d", 8, 8);
  Tensor forward(const Tensor& x) override { return d(tanh(c(tanh(b(tanh(a(x))))))); }
};

}  // namespace

TEST_CASE("fsdp/equals_ddp: to the bit with two ranks, with momentum and with Adam") {
  in_group(2, [](ProcessGroup& group) {
    for (const bool adam : {false, true})
      for (const int micro : {1, 3}) {
        const Case c{.adam = adam, .micro = micro};
        CHECK(trained_sharded(c, group) == trained_ddp(c, group));
      }
  });
}

TEST_CASE("fsdp/equals_one_rank: 2, 3 and 4 ranks train as one on the whole batch, the same on all") {
  const FullyShardedOptions kept{.min_elements = 40, .reshard_after_forward = false}, one{.min_elements = 1'000'000};
  const FullyShardedOptions late{.min_elements = 40, .prefetch = false};
  for (const auto& options : {kSmall, kept, one, late}) {
    const Case c{.micro = 2, .clip = 0.2, .options = options};
    const auto expected = trained_alone(c);
    for (const int n : {1, 2, 3, 4}) {
      std::mutex mutex;
      std::vector<Values> results;
      const auto body = [&](ProcessGroup& group) {
        const auto got = trained_sharded(c, group);
        const std::lock_guard lock(mutex);
        results.push_back(got);
      };
      n == 1 ? body(*make_process_group("single")) : in_group(n, body);
      for (const auto& r : results) {
        CHECK(r == results[0]);
        CHECK(distance(r, expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("fsdp: units by size, gathered only while they compute") {
  in_group(2, [](ProcessGroup& group) {
    Tower net;
    const int64_t unit = (8 * 8 + 8) * 4;
    const auto before = weights(net);
    FullyShardedDataParallel fsdp(net, shared(group), {.min_elements = 72});
    CHECK(fsdp.units() == Names{"d", "c", "b", "a"});
    const auto adam = adam_of(fsdp.parameters());
    CHECK(fsdp.held_bytes(*adam).parameters == 2 * unit);
    CHECK(net.a.weight.sizes() == Shape({8, 8}));
    CHECK(std::isnan(net.a.weight.detach().to_vector<double>()[0]));
    bool alone_within = false;
    net.b.register_forward_pre_hook([&](nn::Module&, const std::vector<Tensor>&) {
      alone_within = !std::isnan(net.b.weight.detach().to_vector<double>()[0]) &&
                     std::isnan(net.a.weight.detach().to_vector<double>()[0]);
      return Tensor();
    });
    const Tensor y = fsdp(ones({2, 8}));
    CHECK(alone_within);
    CHECK(fsdp.held_bytes(*adam).parameters == 2 * unit);
    sum(y).backward();
    const HeldBytes held = fsdp.held_bytes(*adam);
    CHECK(held.parameters == 2 * unit);
    CHECK(held.gradients == 2 * unit);
    CHECK(fsdp.peak_gathered_bytes() <= 2 * unit);
    adam->step();
    CHECK(fsdp.held_bytes(*adam).state == 4 * unit);
    {
      const no_grad guard;
      fsdp(ones({2, 8}));
    }
    CHECK(fsdp.held_bytes(*adam).parameters == 2 * unit);
    for (int pass = 0; pass < 2; ++pass) sum(fsdp(ones({2, 8}))).backward();
    CHECK(fsdp.peak_gathered_bytes() <= 2 * unit);
    CHECK(fsdp.held_bytes(*adam).parameters == 2 * unit);
    fsdp.unshard();
    if (group.rank() == 0) CHECK(distance(weights(net), before) == approx(0.02, {.relative = 0.1}));
  });
}

TEST_CASE("fsdp/bytes_per_rank: parameters, gradients and state, total / ranks") {
  std::mutex mutex;
  std::string table = "ranks  parameters  gradients  state (bytes of rank 0)\n";
  for (const int n : {1, 2, 4}) {
    const auto body = [&](ProcessGroup& group) {
      Tower net;
      FullyShardedDataParallel fsdp(net, shared(group), {.min_elements = 72});
      const auto adam = adam_of(fsdp.parameters());
      sum(fsdp(ones({2, 8}))).backward();
      adam->step();
      const HeldBytes held = fsdp.held_bytes(*adam);
      const int64_t whole = net.parameter_count() * 4;
      CHECK(held.parameters == whole / n);
      CHECK(held.gradients == whole / n);
      CHECK(held.state == 2 * whole / n);
      const std::lock_guard lock(mutex);
      if (group.rank() == 0)
        table += fmt::format("{:5}  {:10}  {:9}  {:5}\n", n, held.parameters, held.gradients, held.state);
    };
    n == 1 ? body(*make_process_group("single")) : in_group(n, body);
  }
  MESSAGE(table);
}

TEST_CASE("fsdp: the saved state equals that of one process and loads on another number of ranks") {
  Net alone(1);
  const auto whole = adam_of(alone.parameters());
  const auto steps = [](optim::Optimizer& opt, int first, const std::function<Tensor(int)>& loss) {
    for (int s = first; s < first + 3; ++s) {
      opt.zero_grad();
      loss(s).backward();
      opt.step();
    }
  };
  const auto on_whole = [&](int s) { return loss_of(alone(input(s))); };
  steps(*whole, 0, on_whole);
  StateDict model, state;
  in_group(2, [&](ProcessGroup& group) {
    Net net(1);
    FullyShardedDataParallel fsdp(net, shared(group), kSmall);
    const auto opt = adam_of(fsdp.parameters());
    steps(*opt, 0, [&](int s) { return loss_of(fsdp(part(input(s), group.rank(), 2))); });
    const StateDict m = fsdp.state_dict(), o = fsdp.optimizer_state(*opt);
    CHECK(m.empty() == (group.rank() != 0));
    if (group.rank() != 0) return;
    for (const auto& [name, t] : m) model.set(name, t.clone());
    for (const auto& [name, t] : o) state.set(name, t.clone());
  });
  const auto same = [](const StateDict& a, const StateDict& b) {
    REQUIRE(a.size() == b.size());
    for (const auto& [name, t] : a) {
      REQUIRE(b.contains(name));
      CHECK(b.at(name).sizes() == t.sizes());
      CHECK(distance(b.at(name).to_vector<double>(), t.to_vector<double>()) < 1e-5);
    }
  };
  same(alone.state_dict(), model);
  same(whole->state_dict(), state);
  steps(*whole, 3, on_whole);
  for (const int n : {1, 4}) {
    const auto body = [&](ProcessGroup& group) {
      Net net(9);
      FullyShardedDataParallel fsdp(net, shared(group), {.min_elements = n == 1 ? 40 : 1000});
      const auto opt = adam_of(fsdp.parameters());
      fsdp.load_state_dict(model);
      fsdp.load_optimizer_state(*opt, state);
      steps(*opt, 3, [&](int s) { return loss_of(fsdp(part(input(s), group.rank(), n))); });
      fsdp.unshard();
      CHECK(distance(weights(net), weights(alone)) < 1e-5);
    };
    n == 1 ? body(*make_process_group("single")) : in_group(n, body);
  }
  const auto group = make_process_group("single");
  Net net(1);
  FullyShardedDataParallel fsdp(net, group, kSmall);
  StateDict doubles;
  for (const auto& [name, t] : model) doubles.set(name, t.to(kFloat64));
  fsdp.load_state_dict(doubles);
  same(fsdp.state_dict(), model);
  StateDict wrong = model;
  wrong.set("more", ones({2}));
  wrong.set("fc1.bias", ones({2}));
  CHECK_THROWS_WITH_AS(fsdp.load_state_dict(wrong),
                       "[load_state_dict] this state is not one of a Net: \"fc1.bias\" is (7,) float32 here and (2,) "
                       "float32 there; unexpected: \"more\". Nothing was loaded.",
                       StateError);
}

TEST_CASE("fsdp: shared, frozen and unused parameters, several types, buffers") {
  struct Mixed : nn::Module {
    nn::Linear& a = add<nn::Linear>("a", 4, 4);
    nn::Linear& b = add<nn::Linear>("b", 4, 4);
    nn::BatchNorm2d& n = add<nn::BatchNorm2d>("n", 4);
    nn::Linear& unused = add<nn::Linear>("unused", 4, 4);
    Tensor forward(const Tensor& x) override { return b(n(a(a(x)).view({-1, 4, 1, 1})).view({-1, 4})); }
  };
  manual_seed(5);
  const Mixed start;  // the ranks are threads that share random numbers
  const StateDict model = start.state_dict();
  in_group(2, [&](ProcessGroup& group) {
    Mixed alone, net;
    for (nn::Module* m : {static_cast<nn::Module*>(&alone), static_cast<nn::Module*>(&net)}) m->load_state_dict(model);
    for (Mixed* m : {&alone, &net}) {
      m->a.bias.requires_grad_(false);
      m->eval();
    }
    FullyShardedDataParallel fsdp(net, shared(group), {.min_elements = 20, .find_unused_parameters = true});
    const auto opt = sgd_of(fsdp.parameters()), whole = sgd_of(alone.parameters());
    for (int s = 0; s < 3; ++s) {
      const Tensor x = input(s).narrow(1, 0, 4);
      opt->zero_grad();
      whole->zero_grad();
      loss_of(fsdp(part(x, group.rank(), 2))).backward();
      loss_of(alone(x)).backward();
      opt->step();
      whole->step();
    }
    fsdp.unshard();
    CHECK(distance(weights(net), weights(alone)) < 1e-6);
    CHECK(net.unused.weight.to_vector<double>() == alone.unused.weight.to_vector<double>());
  });
}

TEST_CASE("fsdp: a weight shared by two modules belongs to the root unit") {
  struct Layer : nn::Module {
    explicit Layer(const Tensor& w) : weight(register_parameter("weight", w)) {}
    Tensor weight;
    Tensor forward(const Tensor& x) override { return tanh(matmul(x, weight)); }
  };
  struct Tied : nn::Module {
    explicit Tied(const Tensor& w) : in(add<Layer>("in", w)), out(add<Layer>("out", w)) {}
    Layer &in, &out;
    Tensor forward(const Tensor& x) override { return out(in(x)); }
  };
  in_group(2, [](ProcessGroup& group) {
    const Tensor start = mul(input(1).narrow(0, 0, 5), 0.3);
    Tied net(start.clone()), alone(start.clone());
    FullyShardedDataParallel fsdp(net, shared(group), {.min_elements = 20});
    CHECK(fsdp.units() == Names{""});
    const auto opt = sgd_of(fsdp.parameters()), whole = sgd_of(alone.parameters());
    loss_of(fsdp(part(input(0), group.rank(), 2))).backward();
    loss_of(alone(input(0))).backward();
    opt->step();
    whole->step();
    fsdp.unshard();
    CHECK(distance(weights(net), weights(alone)) < 1e-6);
  });
}

TEST_CASE("fsdp: gathered values of an earlier step are not reused") {
  in_group(2, [](ProcessGroup& group) {
    Net net(1);
    FullyShardedDataParallel fsdp(net, shared(group), {.min_elements = 40, .reshard_after_forward = false});
    const auto opt = sgd_of(fsdp.parameters());
    const Tensor x = part(input(0), group.rank(), 2);
    loss_of(fsdp(x)).backward();
    const auto value = [&] {
      const no_grad guard;
      return fsdp(x).to_vector<double>();
    };
    const auto before = value();  // the units stay gathered after it
    opt->step();
    CHECK(value() != before);
    const Tensor late = loss_of(fsdp(x));
    opt->step();
    value();
    CHECK_THROWS_AS(late.backward(), GradError);
  });
}

TEST_CASE("fsdp: an optimizer that needs whole parameters is refused") {
  struct Shaped : optim::SGD {
    using SGD::SGD;
    bool is_elementwise() const override { return false; }
  };
  Net net(1);
  Shaped shaped(net.parameters(), {.lr = 0.1});
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  FullyShardedDataParallel fsdp(net, make_process_group("single"), kSmall);
  CHECK_THROWS_AS(fsdp.take(shaped), ValueError);
  fsdp.take(sgd);
  CHECK(fsdp.has(sgd.parameters()[0]));
  CHECK(fsdp.full_parameters(sgd.parameters())[0].is_same(net.fc1.weight));
}
