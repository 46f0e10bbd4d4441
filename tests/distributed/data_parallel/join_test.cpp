// Ranks with different numbers of batches, and static graphs.
#include <doctest/doctest.h>

#include <mutex>

#include "distributed/ddp_models.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

struct Law {
  std::vector<int> batches;  // by rank
  bool divide_by_all = true;
  bool shadow_steps = false;
  int epochs = 1;
};

Tensor batch(int epoch, int rank, int step) { return input(100 * epoch + 10 * rank + step); }

// Simulates in one process: adds the gradients of the ranks that still have batches.
std::vector<double> simulated(const Law& law) {
  Net net(1);
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int epoch = 0; epoch < law.epochs; ++epoch) {
    for (int step = 0; step < *std::max_element(law.batches.begin(), law.batches.end()); ++step) {
      net.zero_grad();
      const auto active =
          std::count_if(law.batches.begin(), law.batches.end(), [&](int batches) { return step < batches; });
      const auto parts = law.divide_by_all ? law.batches.size() : static_cast<std::size_t>(active);
      for (std::size_t r = 0; r < law.batches.size(); ++r) {
        if (step >= law.batches[r]) continue;
        div(loss_of(net(batch(epoch, static_cast<int>(r), step))), static_cast<double>(parts)).backward();
      }
      sgd.step();
    }
  }
  return weights(net);
}

void check_law(const Law& law, const DistributedDataParallelOptions& options,
               const std::function<CommHook()>& hook = {}) {
  const auto expected = simulated(law);
  in_group(static_cast<int>(law.batches.size()), [&](ProcessGroup& group) {
    Net net(1);
    DistributedDataParallel ddp(net, shared(group), options);
    if (hook) ddp.register_comm_hook(hook());
    optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    JoinOptions join{.divide_by_initial_world_size = law.divide_by_all};
    if (law.shadow_steps) join.shadow_step = [&] { sgd.step(); };
    for (int epoch = 0; epoch < law.epochs; ++epoch) {
      ddp.join(
          [&] {
            for (int step = 0; step < law.batches[static_cast<std::size_t>(group.rank())]; ++step) {
              net.zero_grad(step % 2 == 0);
              loss_of(ddp(batch(epoch, group.rank(), step))).backward();
              sgd.step();
            }
          },
          join);
      ddp.check_parameters();
    }
    CHECK(distance(weights(net), expected) < (hook ? 1e-2 : 1e-6));
  });
}

DistributedDataParallelOptions fixed_graph() {
  DistributedDataParallelOptions options = small();
  options.static_graph = true;
  return options;
}

}  // namespace

TEST_CASE("join: the first or the last rank runs out of batches, or one has none") {
  check_law({.batches = {2, 4}}, small());
  check_law({.batches = {4, 1, 2}}, small());
  check_law({.batches = {0, 3}}, small());
  check_law({.batches = {0, 0}}, small());
}

TEST_CASE("join: averages over the ranks that still have batches") {
  check_law({.batches = {2, 4}, .divide_by_all = false}, small());
  check_law({.batches = {1, 3, 2}, .divide_by_all = false}, small(true));
}

TEST_CASE("join: if finished ranks step too, the next epochs match one process") {
  check_law({.batches = {2, 4}, .shadow_steps = true, .epochs = 3}, small());
  check_law({.batches = {3, 0}, .divide_by_all = false, .shadow_steps = true, .epochs = 2}, small(true));
}

TEST_CASE("join: a static graph with and without unused parameters, which ranks learn at different times") {
  check_law({.batches = {3, 3}, .shadow_steps = true, .epochs = 2}, fixed_graph());
  check_law({.batches = {0, 3}, .shadow_steps = true, .epochs = 1}, fixed_graph());
  check_law({.batches = {3, 1}, .shadow_steps = true, .epochs = 2}, fixed_graph());
  in_group(2, [](ProcessGroup& group) {
    Branches net;
    net.use_b = false;
    DistributedDataParallel ddp(net, shared(group), fixed_graph());
    for (const int late : {0, 1}) {
      ddp.join([&] {
        if (group.rank() != late) sum(ddp(ones({2, 4}))).backward();
      });
    }
    CHECK(net.a.parameters()[0].grad().defined());
    CHECK_FALSE(net.b.parameters()[0].grad().defined());
  });
}

TEST_CASE("join: hooks send the error feedback of a finished rank") {
  check_law({.batches = {2, 4}}, small(), [] { return fp16_compress_hook; });
  check_law({.batches = {2, 4}, .divide_by_all = false}, small(),
            [] { return PowerSgd({.rank = 6, .start_step = 0, .min_compression = 0.01}); });
}

TEST_CASE("join: buffers come from a rank that still has batches, also at the end") {
  in_group(2, [](ProcessGroup& group) {
    nn::BatchNorm2d batch_norm(3);
    DistributedDataParallel ddp(batch_norm, shared(group));
    const auto running = [&] { return batch_norm.named_buffers()[0].second; };
    ddp.join([&] {
      for (int step = 0; step < (group.rank() == 0 ? 1 : 4); ++step) {
        sum(square(ddp(add(ones({8, 3, 2, 2}), static_cast<double>(10 * group.rank() + step))))).backward();
      }
    });
    const Tensor other = running().clone();
    group.broadcast(other, 1).wait();
    CHECK(running().to_vector<double>() == other.to_vector<double>());
    const double expected = ((1.1 * 0.9 + 1.2) * 0.9 + 1.3) * 0.9 + 1.4;  // rank 1's means: 11, 12, 13 and 14
    CHECK(running().to_vector<double>()[0] == approx(expected, {.relative = 1e-6}));
  });
}

TEST_CASE("join: no_sync, and steps in which ranks differ") {
  const auto loop = [](ProcessGroup& group, int batches_of_1, int period_of_1) {
    Net net(1);
    DistributedDataParallel ddp(net, shared(group), small());
    const int batches = group.rank() == 0 ? 2 : batches_of_1, period = group.rank() == 0 ? 2 : period_of_1;
    ddp.join([&] {
      for (int s = 0; s < batches; ++s) {
        std::optional<DistributedDataParallel::NoSync> quiet;
        if (s % period != period - 1) quiet.emplace(ddp.reducer());
        loss_of(ddp(part(input(s), group.rank(), 2))).backward();
      }
    });
    ddp.check_parameters();
    return gradients(net);
  };
  in_group(2, [&](ProcessGroup& group) {
    // Rank 1 accumulates onto the average after the first reduction, so its part counts half.
    Net first(1);
    for (int s = 0; s < 2; ++s) loss_of(first(input(s))).backward();
    const auto got = loop(group, 4, 2);
    if (group.rank() == 0) CHECK(distance(got, gradients(first)) < 1e-6);
    if (group.rank() == 1) {
      Net later(1);
      for (int s = 2; s < 4; ++s) mul(loss_of(later(part(input(s), 1, 2))), 0.5).backward();
      std::vector<double> expected = gradients(later);
      const auto earlier = gradients(first);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += 0.5 * earlier[i];
      CHECK(distance(got, expected) < 1e-6);
    }
  });
  const auto errors = errors_in_group(2, [&](ProcessGroup& group) { loop(group, 2, 1); });
  for (const std::string& e : errors) {
    CHECK_MESSAGE(e.find("rank 0 keeps its gradients in this step, but rank 1 does not do so") != std::string::npos, e);
  }
}

TEST_CASE("join: all ranks may stop with the first; joins do not nest") {
  const auto errors = errors_in_group(3, [](ProcessGroup& group) {
    Net net(1);
    DistributedDataParallel ddp(net, shared(group));
    ddp.join(
        [&] {
          for (int s = 0; s < (group.rank() == 1 ? 1 : 5); ++s) loss_of(ddp(input(s))).backward();
        },
        {.throw_on_early_termination = true});
  });
  for (const std::string& e : errors) CHECK(e == "[join] rank 1 has no more batches, so all ranks end here.");
  Net net(1);
  DistributedDataParallel ddp(net, make_process_group("single"));
  CHECK_THROWS_AS(ddp.join([&] { ddp.join([] {}); }), ValueError);
  ddp.join([&] { loss_of(ddp(input(0))).backward(); });
}

TEST_CASE("static graph: parameters unused in the first step are not waited for in later ones") {
  in_group(2, [](ProcessGroup& group) {
    Branches net;
    DistributedDataParallel ddp(net, shared(group), fixed_graph());
    net.use_b = group.rank() == 0;  // used by some ranks
    std::vector<double> first;
    for (int step = 0; step < 3; ++step) {
      net.zero_grad();
      sum(ddp(ones({2, 4}))).backward();
      const auto now = net.b.parameters()[0].grad().to_vector<double>();
      if (step == 0) first = now;
      CHECK(now == first);
    }
    Branches whole;
    nn::Module& copy = whole;
    copy.load_state_dict(net.state_dict());
    sum(whole(ones({2, 4}))).backward();
    const auto expected = whole.b.parameters()[0].grad().to_vector<double>();
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i] == approx(expected[i] / 2, {.relative = 1e-6}));
  });
}

TEST_CASE("static graph: a later step that uses other parameters is refused on all ranks") {
  const auto steps = [](bool then, bool later) {
    return errors_in_group(2, [&](ProcessGroup& group) {
      Branches net;
      DistributedDataParallel ddp(net, shared(group), fixed_graph());
      for (const bool use : {then, later}) {
        net.use_b = use;
        sum(ddp(ones({2, 4}))).backward();
      }
    });
  };
  for (const std::string& e : steps(false, true)) {
    CHECK_MESSAGE(e.find("backward reached b.") != std::string::npos, e);
    CHECK_MESSAGE(e.find("Unset static_graph.") != std::string::npos, e);
  }
  for (const std::string& e : steps(true, false)) {
    CHECK_MESSAGE(e.find("backward did not reach b.weight, b.bias on rank") != std::string::npos, e);
  }
  // Rank 1's first step coincides with the others' second.
  const auto late = errors_in_group(2, [](ProcessGroup& group) {
    Branches net;
    DistributedDataParallel ddp(net, shared(group), fixed_graph());
    for (int epoch = 0; epoch < 2; ++epoch) {
      net.use_b = group.rank() == 1;
      ddp.join([&] {
        if (epoch == 1 || group.rank() == 0) sum(ddp(ones({2, 4}))).backward();
      });
    }
  });
  for (const std::string& e : late) {
    CHECK_MESSAGE(e.find("on rank 1, which no rank's first step did") != std::string::npos, e);
  }
}
