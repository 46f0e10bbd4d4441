// Averaging the weights every few steps (local SGD), by hand and with DDP.
#include <doctest/doctest.h>

#include <levin/distributed/model_averaging.h>

#include "distributed/ddp_models.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

constexpr auto kAllReduce = Collective::Kind::all_reduce;

/// Returns whether all ranks have bit-equal weights.
bool agree(ProcessGroup& group, const nn::Module& net) {
  const auto own = weights(net);
  const auto n = static_cast<int64_t>(own.size());
  const Tensor all = empty({group.size(), n}, {.dtype = kFloat64});
  group.all_gather(all, from_data(own, {n})).wait();
  for (int r = 0; r < group.size(); ++r)
    if (all.select(0, r).to_vector<double>() != own) return false;
  return true;
}

}  // namespace

TEST_CASE("average_parameters: all ranks get the same bits of the average, with one message per type") {
  for (const int n : {1, 2, 3}) {
    in_group(n, [&](ProcessGroup& group) {
      const double own = group.rank() + 1;
      const Parameter a("a", full({2, 3}, own).requires_grad_()), b("b", full({4}, -own, {.dtype = kFloat64})),
          c("c", full({1}, 10 * own).requires_grad_());
      const auto before = group.begun(kAllReduce);
      average_parameters(group, {a, b, c});
      CHECK(group.begun(kAllReduce) - before == 2);
      const double mean = (n + 1) / 2.0;
      CHECK(a.to_vector<double>() == std::vector<double>(6, mean));
      CHECK(b.to_vector<double>() == std::vector<double>(4, -mean));
      CHECK(c.to_vector<double>() == std::vector<double>{10 * mean});
      CHECK(a.requires_grad());
      CHECK(a.is_leaf());
    });
  }
}

TEST_CASE("PeriodicModelAverager averages after step warmup_steps and every period-th from there, as PyTorch's") {
  in_group(2, [](ProcessGroup& group) {
    const Parameter w("w", zeros({3}));
    PeriodicModelAverager averager(shared(group), {.period = 3, .warmup_steps = 2});
    std::string averaged;
    for (int step = 0; step < 10; ++step) {
      w.detach().fill_(group.rank());
      averager.average_parameters({w});
      averaged += w.to_vector<double>() == std::vector<double>(3, 0.5) ? 'a' : '.';
    }
    CHECK(averaged == "..a..a..a.");
    CHECK(averager.step() == 10);
    PeriodicModelAverager resumed(shared(group), {.period = 3, .warmup_steps = 2});
    resumed.set_step(10);
    w.detach().fill_(group.rank());
    resumed.average_parameters({w});
    CHECK(w.to_vector<double>() == std::vector<double>(3, group.rank()));
    resumed.average_parameters({w});
    CHECK(w.to_vector<double>() == std::vector<double>(3, 0.5));
  });
  const auto refusal = [](const PeriodicModelAveragerOptions& o) {
    try {
      PeriodicModelAverager(make_process_group("single"), o);
    } catch (const ValueError& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK(refusal({}) == "[PeriodicModelAverager] period 0: give 1 or more steps between two averages.");
  CHECK(refusal({.period = 2, .warmup_steps = -1}) == "[PeriodicModelAverager] warmup_steps -1: give 0 or more.");
}

TEST_CASE("PostLocalSgd: averages over all ranks at first, then over the subgroup, or not at all") {
  in_group(4, [](ProcessGroup& group) {
    const int rank = group.rank();
    const auto low = group.new_group({0, 1}), high = group.new_group({2, 3});
    const auto machine = rank < 2 ? low : high;
    // Three reductions of two buckets each.
    const auto exchanged = [&](const PostLocalSgd& hook) {
      std::vector<double> values;
      for (int i = 0; i < 3; ++i)
        for (const std::size_t index : {0u, 1u}) {
          const Tensor buffer = full({2}, static_cast<double>(rank));
          for (const auto& stage : hook(group, {.index = index, .buffer = buffer})) stage();
          values.push_back(buffer.to_vector<double>()[1]);
        }
      return values;
    };
    const double near = rank < 2 ? 0.5 : 2.5;
    const PostLocalSgd within({.start_local_sgd_iter = 1, .subgroup = machine});
    CHECK(exchanged(within) == std::vector<double>{1.5, 1.5, near, near, near, near});
    CHECK(within.iter() == 3);
    const PostLocalSgd alone({.start_local_sgd_iter = 2, .post_local_gradient_allreduce = false});
    const double own = rank;
    CHECK(exchanged(alone) == std::vector<double>{1.5, 1.5, 1.5, 1.5, own, own});
    const PostLocalSgd resumed({.start_local_sgd_iter = 2, .post_local_gradient_allreduce = false});
    resumed.set_iter(1);
    CHECK(exchanged(resumed) == std::vector<double>{1.5, 1.5, own, own, own, own});
  });
  CHECK_THROWS_WITH_AS(PostLocalSgd({.start_local_sgd_iter = -1, .post_local_gradient_allreduce = false}),
                       "[PostLocalSgd] start_local_sgd_iter -1: give 0 or more.", ValueError);
  CHECK_THROWS_AS(PostLocalSgd({.start_local_sgd_iter = 1}), ValueError);
}

TEST_CASE("local SGD with period 1 matches DDP up to rounding") {
  for (const int n : {2, 3, 4}) {
    in_group(n, [&](ProcessGroup& group) {
      const auto fitted = [&](bool local) {
        Net net(1);
        DistributedDataParallel ddp(net, shared(group), small());
        PeriodicModelAverager averager(shared(group), {.period = 1});
        if (local) ddp.register_comm_hook(PostLocalSgd({.post_local_gradient_allreduce = false}));
        optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
        for (int s = 0; s < 8; ++s) {
          sgd.zero_grad();
          loss_of(ddp(part(input(s), group.rank(), n))).backward();
          const auto before = group.begun(kAllReduce);
          sgd.step();
          if (local) averager.average_parameters(net.parameters());
          CHECK(group.begun(kAllReduce) - before == (local ? 1 : 0));
          CHECK(agree(group, net));
        }
        return weights(net);
      };
      const auto local = fitted(true), plain = fitted(false);
      CHECK(distance(local, plain) < 1e-6);
      CHECK(distance(local, weights(Net(1))) > 1e-2);
    });
  }
}

TEST_CASE("local SGD: within a period ranks differ and do not communicate; after it they are bit-equal") {
  in_group(3, [](ProcessGroup& group) {
    Net net(1);
    DistributedDataParallel ddp(net, shared(group), small());
    ddp.register_comm_hook(PostLocalSgd({.start_local_sgd_iter = 2, .post_local_gradient_allreduce = false}));
    PeriodicModelAverager averager(shared(group), {.period = 4, .warmup_steps = 2});
    optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    std::string tape, exchanges;
    for (int s = 0; s < 11; ++s) {
      sgd.zero_grad();
      const auto before = group.begun(kAllReduce);
      loss_of(ddp(part(input(s), group.rank(), 3))).backward();
      const auto between = group.begun(kAllReduce);
      sgd.step();
      averager.average_parameters(net.parameters());
      exchanges += between > before ? 'g' : group.begun(kAllReduce) > between ? 'w' : '.';
      tape += agree(group, net) ? '=' : '/';
    }
    CHECK(exchanges == "ggw...w...w");  // gradients, weights, nothing
    CHECK(tape == "===///=///=");
  });
}
