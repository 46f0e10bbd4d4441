// Data parallelism compared with one rank on the whole batch, and errors if ranks differ.
#include <doctest/doctest.h>

#include <mutex>

#include "distributed/ddp_models.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

TEST_CASE("ddp: 2, 3 and 4 ranks train as one rank on the whole batch, with bit-equal replicas") {
  Net alone(1);
  const auto expected = train(alone, 6, [&](int s) { loss_of(alone(input(s))).backward(); });
  for (const int n : {2, 3, 4}) {
    std::mutex mutex;
    std::vector<std::vector<double>> results;
    in_group(n, [&](ProcessGroup& group) {
      Net net(static_cast<std::uint64_t>(1 + group.rank()));  // rank 0's values are broadcast
      DistributedDataParallel ddp(net, shared(group), small());
      CHECK(ddp.reducer().buckets().size() > 2);
      const auto got = train(net, 6, [&](int s) { loss_of(ddp(part(input(s), group.rank(), n))).backward(); });
      CHECK(ddp.reducer().overlapped() >= 6);
      ddp.check_parameters();
      const std::lock_guard lock(mutex);
      results.push_back(got);
    });
    for (const auto& r : results) {
      CHECK(r == results[0]);
      CHECK(distance(r, expected) < 1e-6);
    }
  }
}

TEST_CASE("ddp: micro-batches under no_sync, then one reduction") {
  Net alone(1);
  const auto expected = train(alone, 3, [&](int s) {
    for (int micro = 0; micro < 3; ++micro) loss_of(alone(input(3 * s + micro))).backward();
  });
  in_group(2, [&](ProcessGroup& group) {
    Net net(1);
    DistributedDataParallel ddp(net, shared(group), small());
    const auto got = train(net, 3, [&](int s) {
      {
        const auto quiet = ddp.no_sync();
        for (int micro = 0; micro < 2; ++micro) {
          loss_of(ddp(part(input(3 * s + micro), group.rank(), 2))).backward();
        }
      }
      loss_of(ddp(part(input(3 * s + 2), group.rank(), 2))).backward();
    });
    CHECK(distance(got, expected) < 1e-6);
  });
}

TEST_CASE("ddp: gradients are views of the buckets, whose order follows the first backward") {
  in_group(2, [](ProcessGroup& group) {
    Branches net;
    DistributedDataParallel ddp(net, shared(group), {.bucket_cap_mb = 1e-9, .first_bucket_mb = 1e-9});
    using Names = std::vector<std::vector<std::string>>;
    CHECK(ddp.reducer().buckets() == Names{{"b.bias"}, {"b.weight"}, {"a.bias"}, {"a.weight"}});
    // Here backward reaches a before b.
    const auto backward = [&] {
      const Tensor x = ones({2, 4});
      const Tensor of_b = sum(net.b(x));
      const Tensor of_a = sum(net.a(x));
      add(of_b, of_a).backward();
    };
    backward();
    const Tensor first = net.b.parameters()[0].grad();
    backward();
    const auto names = ddp.reducer().buckets();
    CHECK(names.size() == 4);
    CHECK(names != Names{{"b.bias"}, {"b.weight"}, {"a.bias"}, {"a.weight"}});
    // The second backward moves b's gradients to new buckets before it adds to them; the old bucket keeps its values.
    CHECK(first.to_vector<double>() == std::vector<double>(16, 2.0));
    CHECK(net.b.parameters()[0].grad().to_vector<double>() == std::vector<double>(16, 4.0));
    CHECK(net.a.parameters()[0].grad().to_vector<double>() == std::vector<double>(16, 4.0));
    const Tensor kept = net.a.parameters()[0].grad();
    net.zero_grad(false);
    backward();
    CHECK(net.a.parameters()[0].grad().raw_data() == kept.raw_data());
  });
}

TEST_CASE("ddp: a parameter that backward does not reach is named, on all ranks") {
  const auto errors = errors_in_group(2, [](ProcessGroup& group) {
    Branches net;
    DistributedDataParallel ddp(net, shared(group));
    net.use_b = group.rank() == 0;
    sum(ddp(ones({2, 4}))).backward();
  });
  for (const std::string& e : errors) {
    CHECK_MESSAGE(e.find("backward did not reach 2 of 4 parameters on rank 1: b.weight, b.bias.") != std::string::npos,
                  e);
  }
}

TEST_CASE("ddp: find_unused_parameters averages gradients that some ranks used and leaves the rest unchanged") {
  in_group(2, [](ProcessGroup& group) {
    Branches net;
    DistributedDataParallel ddp(net, shared(group), small(true));
    const auto b_weight = [&] { return net.b.parameters()[0]; };
    net.use_b = false;
    sum(ddp(ones({2, 4}))).backward();
    CHECK_FALSE(b_weight().grad().defined());
    net.use_b = group.rank() == 0;
    net.zero_grad();
    sum(ddp(ones({2, 4}))).backward();
    CHECK(b_weight().grad().defined());
    Branches other;
    nn::Module& copy = other;
    copy.load_state_dict(net.state_dict());
    sum(other(ones({2, 4}))).backward();
    const auto whole = other.b.parameters()[0].grad().to_vector<double>(), half = b_weight().grad().to_vector<double>();
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(half[i] == approx(whole[i] / 2, {.relative = 1e-6}));
    // No rank uses it in this step, so its gradient is unchanged.
    net.use_b = false;
    sum(ddp(ones({2, 4}))).backward();
    CHECK(b_weight().grad().to_vector<double>() == half);
  });
}

TEST_CASE("ddp: a parameter that only a micro-batch under no_sync used is still averaged") {
  in_group(2, [](ProcessGroup& group) {
    Branches net;
    DistributedDataParallel ddp(net, shared(group), small(true));
    const auto b_bias = [&] { return net.b.parameters()[1].grad().to_vector<double>(); };
    net.use_b = group.rank() == 0;
    {
      const auto quiet = ddp.no_sync();
      sum(ddp(ones({2, 4}))).backward();
    }
    if (group.rank() == 0) CHECK(b_bias() == std::vector<double>(4, 2.0));
    net.use_b = false;
    sum(ddp(ones({2, 4}))).backward();
    CHECK(b_bias() == std::vector<double>(4, 1.0));
  });
}

TEST_CASE("ddp: rank 0's buffers are broadcast before a forward that follows a reduction") {
  in_group(2, [](ProcessGroup& group) {
    nn::BatchNorm2d batch_norm(3);
    DistributedDataParallel ddp(batch_norm, shared(group));
    Generator rng(static_cast<std::uint64_t>(group.rank()));
    const auto step = [&] {
      const Tensor x = rand({8, 3, 2, 2}, {.generator = &rng});
      sum(square(ddp(add(x, static_cast<double>(group.rank()))))).backward();
    };
    const auto running = [&] { return batch_norm.named_buffers()[0].second.to_vector<double>(); };
    step();
    const auto own = running();
    ddp.before_forward();
    const Tensor of_rank_0 = from_data(own, {3}), now = from_data(running(), {3});
    group.broadcast(of_rank_0, 0).wait();
    CHECK(now.to_vector<double>() == of_rank_0.to_vector<double>());
    if (group.rank() == 1) CHECK(running() != own);
  });
}

TEST_CASE("ddp: differing modules and diverged parameters are errors") {
  const auto shapes = errors_in_group(3, [](ProcessGroup& group) {
    nn::Linear net(4, group.rank() == 2 ? 5 : 6);
    DistributedDataParallel ddp(net, shared(group));
  });
  for (const std::string& e : shapes) {
    CHECK_MESSAGE(e.find("the modules of rank 2 differ from that of rank 0") != std::string::npos, e);
  }
  CHECK(shapes[2].find("rank 0 has \"weight (6, 4) float32\" where this rank has \"weight (5, 4) float32\"") !=
        std::string::npos);
  const auto drift = errors_in_group(3, [](ProcessGroup& group) {
    nn::Linear net(4, 4);
    DistributedDataParallel ddp(net, shared(group));
    ddp.check_parameters();
    const no_grad guard;
    if (group.rank() == 1) net.parameters()[1].add_(1e-6);
    ddp.check_parameters();
  });
  for (const std::string& e : drift) {
    CHECK_MESSAGE(e.find("the parameters of rank 1 are not those of rank 0 any more") != std::string::npos, e);
  }
}

TEST_CASE("ddp: the reducer works again after an exception inside backward") {
  in_group(2, [](ProcessGroup& group) {
    Net net(1);
    DistributedDataParallel ddp(net, shared(group));
    const Tensor y = ddp(part(input(0), group.rank(), 2));
    y.register_hook([](const Tensor&) -> Tensor { throw ValueError("from a hook"); });
    CHECK_THROWS_AS(loss_of(y).backward(), ValueError);
    net.zero_grad();
    loss_of(ddp(part(input(0), group.rank(), 2))).backward();
    Net alone(1);
    loss_of(alone(input(0))).backward();
    CHECK(distance(gradients(net), gradients(alone)) < 1e-6);
  });
}

TEST_CASE("ddp: a reducer given another's bucket order has its buckets; an invalid order is refused") {
  in_group(2, [](ProcessGroup& group) {
    Net net(1), other(1);
    DistributedDataParallel ddp(net, shared(group), small()), again(other, shared(group), small());
    CHECK(ddp.reducer().order().empty());
    const auto step = [&](DistributedDataParallel& d) { loss_of(d(part(input(0), group.rank(), 2))).backward(); };
    step(ddp);
    const auto order = ddp.reducer().order();
    CHECK(order.size() == 6);
    again.reducer().set_order(order);
    CHECK(again.reducer().order() == order);
    step(ddp);  // adopts the order
    step(again);
    CHECK(again.reducer().buckets() == ddp.reducer().buckets());
    CHECK_THROWS_AS(again.reducer().set_order({0, 1}), ValueError);
    CHECK_THROWS_AS(again.reducer().set_order({0, 1, 2, 3, 4, 4}), ValueError);
  });
}
