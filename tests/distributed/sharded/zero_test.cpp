// Optimizers with sharded state and gradients compared with DistributedDataParallel and with one rank.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <levin/distributed/zero.h>

#include <map>
#include <mutex>

#include "distributed/ddp_models.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

using Values = std::vector<double>;

std::unique_ptr<optim::Optimizer> optimizer_of(const std::string& name, const nn::Module& net) {
  if (name == "SGD")
    return std::make_unique<optim::SGD>(net.parameters(),
                                        optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  if (name == "Adam") return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = 0.02});
  return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions{.lr = 0.02, .amsgrad = true});
}

/// Every parameter size is divisible by 2, 3 and 4, so that one bucket per parameter gives the same parts in any order.
struct Even : nn::Module {
  explicit Even(std::uint64_t seed) {
    Generator rng(seed);
    const no_grad guard;
    for (Parameter p : parameters()) p.copy_(mul(randn(p.sizes(), {.generator = &rng}), 0.3));
  }
  nn::Linear& fc1 = add<nn::Linear>("fc1", 5, 12);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 12, 24);
  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
};

struct Case {
  std::string optimizer = "AdamW";
  int stage = 1;
  double cap_mb = 1e-4;  // several buckets
  int micro = 1;         // backwards per step; the last one communicates
  double clip = 0;
};

Tensor micro_loss(nn::Module& net, int s, int micro, const ProcessGroup& group) {
  return loss_of(net(part(input(10 * s + micro), group.rank(), group.size())));
}

Values trained_alone(const Case& c) {
  Net net(1);
  const auto opt = optimizer_of(c.optimizer, net);
  for (int s = 0; s < 5; ++s) {
    opt->zero_grad();
    for (int m = 0; m < c.micro; ++m) loss_of(net(input(10 * s + m))).backward();
    if (c.clip > 0) optim::clip_grad_norm_(net.parameters(), c.clip);
    opt->step();
  }
  return weights(net);
}

template <class N = Net>
Values trained_ddp(const Case& c, ProcessGroup& group) {
  N net(1);
  DistributedDataParallel ddp(net, shared(group), {.bucket_cap_mb = c.cap_mb, .first_bucket_mb = c.cap_mb});
  const auto opt = optimizer_of(c.optimizer, net);
  for (int s = 0; s < 5; ++s) {
    opt->zero_grad();
    for (int m = 0; m < c.micro; ++m) {
      ddp.reducer().set_sync(m + 1 == c.micro);
      micro_loss(net, s, m, group).backward();
    }
    if (c.clip > 0) optim::clip_grad_norm_(net.parameters(), c.clip);
    opt->step();
  }
  return weights(net);
}

template <class N = Net>
Values trained_zero(const Case& c, ProcessGroup& group) {
  N net(1);
  std::optional<DistributedDataParallel> ddp;
  if (c.stage == 1)
    ddp.emplace(net, shared(group),
                DistributedDataParallelOptions{.bucket_cap_mb = c.cap_mb, .first_bucket_mb = c.cap_mb});
  const auto opt = optimizer_of(c.optimizer, net);
  ZeroRedundancyOptimizer zero(*opt, shared(group), {.stage = c.stage, .bucket_cap_mb = c.cap_mb});
  for (int s = 0; s < 5; ++s) {
    zero.zero_grad();
    for (int m = 0; m < c.micro; ++m) {
      if (ddp) ddp->reducer().set_sync(m + 1 == c.micro);
      zero.set_sync(m + 1 == c.micro);
      micro_loss(net, s, m, group).backward();
    }
    if (c.clip > 0) zero.clip_grad_norm_(c.clip);
    zero.step();
  }
  if (c.stage == 2) CHECK(zero.overlapped() >= 5);  // with several buckets
  return weights(net);
}

}  // namespace

TEST_CASE("zero/equals_ddp: to the bit, with momentum and with Adam, for 2, 3 and 4 ranks") {
  for (const int n : {2, 3, 4})
    in_group(n, [&](ProcessGroup& group) {
      for (const char* optimizer : {"SGD", "Adam", "AdamW"}) {
        const Case one{.optimizer = optimizer, .stage = 1, .micro = 2, .clip = 0.3};
        CHECK(trained_zero(one, group) == trained_ddp(one, group));
        const Case two{.optimizer = optimizer, .stage = 2, .micro = 2};
        const auto zero = trained_zero(two, group), ddp = trained_ddp(two, group);
        if (n == 2) CHECK(zero == ddp);
        CHECK(distance(zero, ddp) < (n == 2 ? 1e-12 : optimizer == std::string("SGD") ? 1e-6 : 1e-4));
        const Case single{.optimizer = optimizer, .stage = 2, .cap_mb = 1e-9, .micro = 2};
        CHECK(trained_zero<Even>(single, group) == trained_ddp<Even>(single, group));
      }
    });
}

TEST_CASE("zero/equals_one_rank: 2, 3 and 4 ranks train as one on the whole batch, the same on all") {
  for (const int stage : {1, 2}) {
    const Case c{.optimizer = "SGD", .stage = stage, .micro = 2, .clip = 0.2};
    const auto expected = trained_alone(c);
    for (const int n : {2, 3, 4}) {
      std::mutex mutex;
      std::vector<Values> results;
      in_group(n, [&](ProcessGroup& group) {
        const auto got = trained_zero(c, group);
        const std::lock_guard lock(mutex);
        results.push_back(got);
      });
      for (const auto& r : results) {
        CHECK(r == results[0]);
        CHECK(distance(r, expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("zero/state_bytes_per_rank: total / ranks, and for stage 2 also the gradients") {
  std::mutex mutex;
  std::map<std::pair<int, int>, HeldBytes> rows;
  in_group(4, [&](ProcessGroup& group) {
    for (const int stage : {0, 1, 2}) {
      Net net(1);
      share_module(net, group);
      const auto adam = optimizer_of("Adam", net);
      std::optional<DistributedDataParallel> ddp;
      if (stage < 2) ddp.emplace(net, shared(group));
      std::optional<ZeroRedundancyOptimizer> zero;
      HeldBytes held;
      const int64_t whole = net.parameter_count() * 4, share = (net.parameter_count() + 3) / 4 * 4;
      if (stage > 0) zero.emplace(*adam, shared(group), ZeroOptions{.stage = stage});
      micro_loss(net, 0, 0, group).backward();
      if (zero) {
        zero->step();
        held = zero->held_bytes();
      } else {
        adam->step();
        held = {whole, 0, 0};
        for (const Parameter& p : net.parameters()) held.gradients += p.grad().numel() * 4;
        for (const auto& [name, t] : adam->state_dict())
          if (name.starts_with("state.") && !name.ends_with(".step")) held.state += t.numel() * 4;
      }
      CHECK(held.parameters == whole);
      CHECK(held.gradients <= (stage == 2 ? share : whole));
      CHECK(held.state <= (stage == 0 ? 2 * whole : 2 * share));
      CHECK(held.state >= (stage == 0 ? 2 * whole : 2 * (share - 16)));
      const std::lock_guard lock(mutex);
      rows[{stage, group.rank()}] = held;
    }
  });
  std::string table = "stage  rank  parameters  gradients  state (bytes; stage 0 is ddp)\n";
  for (const auto& [key, held] : rows)
    table += fmt::format("{:5}  {:4}  {:10}  {:9}  {:5}\n", key.first, key.second, held.parameters, held.gradients,
                         held.state);
  MESSAGE(table);
}

TEST_CASE("zero: state saved by 4 ranks equals that of one process and resumes on 2, 3 and 1") {
  for (const int stage : {1, 2}) {
    StateDict saved, model;
    const auto train_on = [&](nn::Module& net, optim::Optimizer& opt, ZeroRedundancyOptimizer* zero, int first,
                              int count, ProcessGroup* group) {
      for (int s = first; s < first + count; ++s) {
        zero ? zero->zero_grad() : opt.zero_grad();
        const Tensor x = input(s);
        loss_of(net(group ? part(x, group->rank(), group->size()) : x)).backward();
        if (zero) {
          if (stage == 1)
            for (const Parameter& p : net.parameters()) group->all_reduce(p.grad(), ReduceOp::avg).wait();
          zero->step();
        } else {
          opt.step();
        }
      }
    };
    Net alone(1);
    const auto whole = optimizer_of("AdamW", alone);
    train_on(alone, *whole, nullptr, 0, 3, nullptr);
    in_group(4, [&](ProcessGroup& group) {
      Net net(1);
      const auto opt = optimizer_of("AdamW", net);
      ZeroRedundancyOptimizer zero(*opt, shared(group), {.stage = stage, .bucket_cap_mb = 1e-4});
      train_on(net, *opt, &zero, 0, 3, &group);
      const StateDict state = zero.state_dict();
      CHECK(state.empty() == (group.rank() != 0));
      if (group.rank() != 0) return;
      for (const auto& [name, t] : state) saved.set(name, t.clone());
      for (const auto& [name, t] : net.state_dict()) model.set(name, t.clone());
    });
    const StateDict expected = whole->state_dict();
    REQUIRE(saved.size() == expected.size());
    for (const auto& [name, t] : expected) {
      REQUIRE(saved.contains(name));
      CHECK(saved.at(name).sizes() == t.sizes());
      CHECK(distance(saved.at(name).to_vector<double>(), t.to_vector<double>()) < 1e-6);
    }
    train_on(alone, *whole, nullptr, 3, 3, nullptr);
    for (const int n : {2, 3})
      in_group(n, [&](ProcessGroup& group) {
        Net net(7);
        nn::Module& module = net;
        module.load_state_dict(model);
        const auto opt = optimizer_of("AdamW", net);
        ZeroRedundancyOptimizer zero(*opt, shared(group), {.stage = stage});
        zero.load_state_dict(saved);
        train_on(net, *opt, &zero, 3, 3, &group);
        CHECK(distance(weights(net), weights(alone)) < 1e-5);
      });
    Net one(7);
    nn::Module& module = one;
    module.load_state_dict(model);
    const auto opt = optimizer_of("AdamW", one);
    opt->load_state_dict(saved);
    train_on(one, *opt, nullptr, 3, 3, nullptr);
    CHECK(distance(weights(one), weights(alone)) < 1e-5);
  }
}

TEST_CASE("zero: a parameter larger than a shard, ranks without elements, several types") {
  struct Odd : nn::Module {
    Tensor big = register_parameter("big", full({97}, 0.5));
    Tensor one = register_parameter("one", full({}, 2.0));
    Tensor wide = register_parameter("wide", full({3}, 0.25, {.dtype = kFloat64}));
  };
  for (const int stage : {1, 2})
    in_group(4, [&](ProcessGroup& group) {
      Odd net;
      optim::Adam adam(net.parameters(), {.lr = 0.1});
      ZeroRedundancyOptimizer zero(adam, shared(group), {.stage = stage});
      add(add(sum(mul(net.big, net.one)), net.one), sum(net.wide).to(kFloat32)).backward();
      if (stage == 2) CHECK_FALSE(net.big.grad().defined());
      zero.step();
      const auto all_are = [](const Tensor& t, double value) {
        for (const double v : t.to_vector<double>()) CHECK(v == approx(value, {.relative = 1e-6}));
      };
      all_are(net.big, 0.4);  // Adam's first step is lr, whatever the gradient
      all_are(net.one, 1.9);
      all_are(net.wide, 0.15);
    });
}

TEST_CASE("zero: stage 2 skips parameters that no rank used, or names them") {
  in_group(2, [](ProcessGroup& group) {
    Branches net;
    share_module(net, group);
    optim::SGD sgd(net.parameters(), {.lr = 0.5});
    ZeroRedundancyOptimizer zero(sgd, shared(group),
                                 {.stage = 2, .bucket_cap_mb = 1e-9, .find_unused_parameters = true});
    const auto before = weights(net.b);
    net.use_b = false;
    sum(net(ones({2, 4}))).backward();
    zero.step();
    CHECK(weights(net.b) == before);
    net.use_b = group.rank() == 0;
    zero.zero_grad();
    sum(net(ones({2, 4}))).backward();
    zero.step();
    CHECK(weights(net.b) != before);
    const auto bias = net.b.parameters()[1].to_vector<double>();
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(bias[i] == approx(before[16 + i] - 0.5, {.absolute = 1e-6}));  // a gradient of 2 on one of two ranks
  });
  const auto errors = errors_in_group(2, [](ProcessGroup& group) {
    Branches net;
    optim::SGD sgd(net.parameters(), {.lr = 0.5});
    ZeroRedundancyOptimizer zero(sgd, shared(group), {.stage = 2});
    net.use_b = group.rank() == 0;
    sum(net(ones({2, 4}))).backward();
  });
  for (const std::string& e : errors)
    CHECK_MESSAGE(e.find("backward did not reach 2 of 4 parameters on rank 1: b.bias, b.weight.") != std::string::npos,
                  e);
}

TEST_CASE("zero: reduce averages accumulated gradients") {
  in_group(3, [](ProcessGroup& group) {
    Net net(1), alone(1);
    const auto opt = optimizer_of("SGD", net), whole = optimizer_of("SGD", alone);
    ZeroRedundancyOptimizer zero(*opt, shared(group), {.stage = 2, .bucket_cap_mb = 1e-4});
    zero.set_sync(false);
    for (int s = 0; s < 2; ++s) {
      zero.zero_grad();
      whole->zero_grad();
      for (int m = 0; m < 2; ++m) {
        micro_loss(net, s, m, group).backward();
        loss_of(alone(input(10 * s + m))).backward();
      }
      zero.reduce();
      zero.step();
      whole->step();
    }
    CHECK(distance(weights(net), weights(alone)) < 1e-6);
  });
}

TEST_CASE("zero: two reductions without zero_grad in between accumulate") {
  in_group(2, [](ProcessGroup& group) {
    Net net(1), alone(1);
    const auto opt = optimizer_of("SGD", net), whole = optimizer_of("SGD", alone);
    ZeroRedundancyOptimizer zero(*opt, shared(group), {.stage = 2, .bucket_cap_mb = 1e-4});
    for (int m = 0; m < 2; ++m) {
      micro_loss(net, 0, m, group).backward();
      loss_of(alone(input(m))).backward();
    }
    zero.step();
    whole->step();
    CHECK(distance(weights(net), weights(alone)) < 1e-6);
  });
}

TEST_CASE("zero: optimizers that cannot be sharded are refused") {
  struct Shaped : optim::SGD {
    using SGD::SGD;
    bool is_elementwise() const override { return false; }
  };
  const auto group = make_process_group("single");
  Net net(1);
  Shaped shaped(net.parameters(), {.lr = 0.1});
  CHECK_THROWS_WITH_AS(ZeroRedundancyOptimizer(shaped, group),
                       "[zero] SGD looks at whole parameters (their shapes or norms), and a rank has pieces of them. "
                       "Use an optimizer that is elementwise, such as AdamW, or --strategy ddp.",
                       ValueError);
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  CHECK_THROWS_AS(ZeroRedundancyOptimizer(sgd, group, {.stage = 3}), ValueError);
  loss_of(net(input(0))).backward();
  sgd.step();
  CHECK_THROWS_AS(ZeroRedundancyOptimizer(sgd, group), ValueError);
}
