// SyncBatchNorm compared with BatchNorm in one process on the whole batch, and with finite differences.
#include <doctest/doctest.h>
#include <levin/distributed/sync_batch_norm.h>

#include <mutex>
#include <numeric>

#include "distributed/ddp_models.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

constexpr int64_t kChannels = 3;

Tensor images(int64_t batch, DType dtype) {
  Generator rng(5);
  return add(mul(randn({batch, kChannels, 2, 3}, {.dtype = dtype, .generator = &rng}), 1.7), 0.6);
}

// Returns this rank's part of a tensor that is split into these sizes.
Tensor cut(const Tensor& whole, const std::vector<int64_t>& sizes, int rank) {
  return whole.narrow(0, std::accumulate(sizes.begin(), sizes.begin() + rank, int64_t{0}),
                      sizes[static_cast<std::size_t>(rank)]);
}

double worst(const Tensor& a, const Tensor& b) {
  return distance(a.detach().to_vector<double>(), b.detach().to_vector<double>());
}

Tensor weighted(const Tensor& y, const Tensor& weights) { return sum(mul(square(y), weights)); }

Tensor total(ProcessGroup& group, const Tensor& t) {
  const Tensor sum = t.detach().clone();
  group.all_reduce(sum).wait();
  return sum;
}

}  // namespace

TEST_CASE("sync batch norm: values, gradients and running statistics match the whole batch") {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 5}, {1, 4, 2}, {0, 6}}) {
    const int64_t batch = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    for (const DType dtype : {kFloat32, kFloat64}) {
      const double allowed = dtype == kFloat32 ? 1e-6 : 1e-12;
      Generator rng(6);
      const Tensor weights = rand({batch, kChannels, 2, 3}, {.dtype = dtype, .generator = &rng});
      nn::BatchNorm2d alone(kChannels);
      alone.to(dtype);
      const Tensor x = images(batch, dtype).requires_grad_();
      Tensor y;
      for (int step = 0; step < 2; ++step) y = alone(x);
      weighted(y, weights).backward();
      const Tensor probe = images(2, dtype);
      alone.eval();
      const Tensor evaluated = alone(probe);
      in_group(static_cast<int>(sizes.size()), [&](ProcessGroup& group) {
        SyncBatchNorm norm(kChannels, shared(group));
        norm.to(dtype);
        const Tensor own = cut(images(batch, dtype), sizes, group.rank()).clone().requires_grad_();
        Tensor own_y;
        for (int step = 0; step < 2; ++step) own_y = norm(own);
        weighted(own_y, cut(weights, sizes, group.rank())).backward();
        const Tensor its_y = cut(y.detach(), sizes, group.rank()), its_grad = cut(x.grad(), sizes, group.rank());
        if (its_y.numel() == 0) {
          CHECK(own_y.sizes() == its_y.sizes());
          CHECK(own.grad().sizes() == its_grad.sizes());
        } else {
          CHECK(worst(own_y, its_y) < 4 * allowed);
          CHECK(worst(own.grad(), its_grad) < 4 * allowed);
        }
        // Sums of up to 42 numbers near 1.
        CHECK(worst(total(group, norm.weight.grad()), alone.weight.grad()) < 42 * allowed);
        CHECK(worst(total(group, norm.bias.grad()), alone.bias.grad()) < 42 * allowed);
        CHECK(worst(norm.running_mean, alone.running_mean) < allowed);
        CHECK(worst(norm.running_var, alone.running_var) < 4 * allowed);
        CHECK(norm.num_batches_tracked.item<int64_t>() == 2);
        norm.eval();
        CHECK(worst(norm(probe), evaluated) < 10 * allowed);
      });
    }
  }
}

TEST_CASE("sync batch norm: first and second gradients match finite differences over all ranks") {
  const std::vector<int64_t> sizes = {2, 1};
  in_group(2, [&](ProcessGroup& group) {
    const auto group_handle = shared(group);
    Generator rng(6);
    const Tensor weights = cut(rand({3, kChannels, 2, 3}, {.dtype = kFloat64, .generator = &rng}), sizes, group.rank());
    const Tensor direction = mul(weights, weights);
    const Tensor gain = tensor<double>({0.5, 1.5, -1.0}), shift = tensor<double>({0.1, 0.2, 0.3});
    const Tensor x = cut(images(3, kFloat64), sizes, group.rank()).clone().requires_grad_();
    const auto loss = [&](const Tensor& at) {
      return weighted(sync_batch_norm(at, {}, {}, gain.to(kFloat64), shift.to(kFloat64), {}, group_handle), weights);
    };
    const auto along = [&](const Tensor& at) {
      return sum(mul(grad({loss(at)}, {at}, {.create_graph = true})[0], direction));
    };
    for (const bool second : {false, true}) {
      const auto value = [&](const Tensor& at) { return second ? along(at) : loss(at); };
      const auto analytic = grad({value(x)}, {x})[0].to_vector<double>();
      Largest error, largest;
      for (int rank = 0; rank < 2; ++rank) {
        for (int64_t i = 0; i < sizes[static_cast<std::size_t>(rank)] * kChannels * 6; ++i) {
          double difference = 0;
          const double step = 1e-5;
          for (const double sign : {1.0, -1.0}) {
            const Tensor moved = x.detach().clone();
            if (group.rank() == rank) moved.flatten()[i].add_(sign * step);
            difference += sign * total(group, value(moved.requires_grad_())).item<double>() / (2 * step);
          }
          if (group.rank() != rank) continue;
          error.add(std::abs(difference - analytic[static_cast<std::size_t>(i)]));
          largest.add(std::abs(difference));
        }
      }
      CHECK(largest.value() > 0.01);
      CHECK(error.value() < 1e-6 * (1 + largest.value()));
    }
  });
}

TEST_CASE("convert_sync_batchnorm: DDP on unequal batches trains as one process on the whole batch") {
  const auto make = [] {
    return nn::Sequential(nn::Conv2d(3, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::ReLU(),
                          nn::Sequential(nn::Conv2d(4, 2, 1), nn::BatchNorm2d(2)));
  };
  const std::vector<int64_t> sizes = {5, 2};
  manual_seed(3);
  nn::Sequential alone = make();
  const StateDict start = [&] {
    StateDict copy;
    for (const auto& [name, t] : alone.state_dict()) copy.set(name, t.clone());
    return copy;
  }();
  // The mean over 7 images, computed from a mean over two ranks.
  const auto loss = [](const Tensor& y, int ranks) { return mul(sum(square(sub(y, 1.0))), ranks / 7.0); };
  const auto run = [&](nn::Module& net, const std::function<Tensor(int)>& value) {
    return train(net, 4, [&](int step) { value(step).backward(); });
  };
  const auto data = [](int step) {
    Generator rng(static_cast<std::uint64_t>(step));
    return randn({7, 3, 4, 4}, {.generator = &rng});
  };
  const auto expected = run(alone, [&](int step) { return mul(loss(alone(data(step)), 1), 0.01); });
  std::mutex one_at_a_time;
  in_group(2, [&](ProcessGroup& group) {
    nn::Sequential net = [&] {
      const std::lock_guard lock(one_at_a_time);  // modules draw from the default generator
      return nn::clone(alone);
    }();
    static_cast<nn::Module&>(net).load_state_dict(start);
    CHECK(convert_sync_batchnorm(net, shared(group)) == 2);
    CHECK(net.state_dict().size() == start.size());
    DistributedDataParallel ddp(net, shared(group), small());
    const auto got = run(net, [&](int step) { return mul(loss(ddp(cut(data(step), sizes, group.rank())), 2), 0.01); });
    CHECK(distance(got, expected) < 2e-6);
    for (std::size_t i = 0; i < net.named_buffers().size(); ++i) {
      CHECK(worst(net.named_buffers()[i].second.to(kFloat32), alone.named_buffers()[i].second.to(kFloat32)) < 1e-5);
    }
    if (group.rank() == 0) net.eval()(data(0));  // needs no other rank
  });
}

TEST_CASE("sync batch norm: 16-bit floats keep their type; invalid inputs are refused") {
  const std::shared_ptr<ProcessGroup> group = make_process_group("single");
  SyncBatchNorm norm(kChannels, group, {.momentum = std::nullopt});
  const Tensor x = images(4, kBFloat16);
  CHECK(norm(x).dtype() == kBFloat16);
  CHECK(worst(norm(x).to(kFloat32), nn::BatchNorm2d(kChannels)(x.to(kFloat32))) < 0x1p-6);
  CHECK(norm(images(4, kFloat32).flatten(2)).sizes() == Shape{4, kChannels, 6});
  CHECK_THROWS_AS(norm(ones({2, 4, 2, 2})), ShapeError);
  CHECK_THROWS_AS(norm(ones({3})), ShapeError);
  CHECK(norm.fresh()->state_dict().size() == norm.state_dict().size());
}
