// DataParallel compared with the module itself on the whole batch: values, gradients, buffers, random numbers, errors.
#include <doctest/doctest.h>
#include <levin/autograd/autocast.h>
#include <levin/autograd/autograd.h>
#include <levin/core/parallel.h>
#include <levin/distributed/data_parallel.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "cases/host_port.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using levin::test::largest_difference;
using levin::test::other_host;

namespace {

constexpr double kF32 = 1e-6, kF64 = 1e-12;

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 8);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 8, 3);
  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
};

std::vector<Device> cpus(std::size_t n) { return std::vector<Device>(n, kCpu); }
std::vector<Device> hosts(int n) {
  levin::test::port_kernels();
  std::vector<Device> devices;
  for (int i = 0; i < n; ++i) devices.push_back(other_host(i));
  return devices;
}

std::vector<float> values(const Tensor& t) { return t.detach().cpu().to_vector<float>(); }

/// Returns output, gradient of the input and gradients of all parameters for one step of a mean loss.
std::vector<Tensor> step(nn::Module& net, const std::function<Tensor(const Tensor&)>& forward, const Tensor& x) {
  net.zero_grad();
  const Tensor leaf = x.detach().clone().requires_grad_();
  const Tensor y = forward(leaf);
  square(y - 1.0).mean().backward();
  std::vector<Tensor> all = {y.detach(), leaf.grad()};
  for (const Parameter& p : net.parameters()) all.push_back(p.grad());
  return all;
}

}  // namespace

TEST_CASE("dp/equals_single") {
  for (const DType dtype : {kFloat32, kFloat64}) {
    for (const int64_t batch : {64, 61, 5, 1}) {
      for (const auto& devices : {cpus(2), cpus(4), hosts(2), hosts(4)}) {
        CAPTURE(name_of(dtype));
        CAPTURE(batch);
        CAPTURE(devices.size());
        CAPTURE(to_string(devices[0]));
        manual_seed(1);
        Net net;
        net.to(dtype);
        const Tensor x = randn({batch, 6}, {.dtype = dtype});
        const auto expected = step(
            net, [&](const Tensor& t) { return net(t); }, x);
        net.to(devices[0]);
        for (const bool in_turns : {false, true}) {
          CAPTURE(in_turns);
          DataParallel parallel = in_turns ? DataParallel::in_turns(net, devices) : DataParallel(net, devices);
          const auto got = step(
              net, [&](const Tensor& t) { return parallel(t); }, x);
          CHECK(got[0].device() == devices[0]);
          CHECK(got[1].device() == kCpu);
          for (std::size_t i = 0; i < expected.size(); ++i)
            CHECK(largest_difference(got[i], expected[i]) <= (dtype == kFloat32 ? kF32 : kF64));
          CHECK(net.fc1.weight.is_leaf());
          CHECK(net.fc1.weight.device() == devices[0]);
        }
      }
    }
  }
}

TEST_CASE("dp/scatter_sizes") {
  using Sizes = std::vector<int64_t>;
  CHECK(DataParallel::part_sizes(64, 4) == Sizes{16, 16, 16, 16});
  CHECK(DataParallel::part_sizes(61, 4) == Sizes{16, 16, 16, 13});
  CHECK(DataParallel::part_sizes(5, 4) == Sizes{2, 2, 1});
  CHECK(DataParallel::part_sizes(1, 4) == Sizes{1});
  CHECK(DataParallel::part_sizes(0, 4).empty());
  nn::Identity net;
  for (const int64_t batch : {64, 61, 5, 2, 1, 0}) {
    DataParallel parallel(net, cpus(4));
    std::mutex mutex;
    std::multiset<int64_t> seen;
    const Tensor x = arange(batch * 2).reshape({batch, 2}), label = arange(batch);
    const auto out = parallel.run({x, label}, [&](nn::Module& replica, const std::vector<Tensor>& parts) {
      const std::lock_guard lock(mutex);
      seen.insert(parts[0].size(0));
      CHECK(parts[1].size(0) == parts[0].size(0));
      return std::vector<Tensor>{replica(parts[0]), parts[1] * 10};
    });
    const auto sizes = batch == 0 ? Sizes{0} : DataParallel::part_sizes(batch, 4);
    CHECK(seen == std::multiset<int64_t>(sizes.begin(), sizes.end()));
    CHECK(out[0].to_vector<int64_t>() == x.to_vector<int64_t>());
    CHECK(out[1].to_vector<int64_t>() == (label * 10).to_vector<int64_t>());
  }
}

TEST_CASE("dp: several optimizer steps give the weights of one device, bit-equal from run to run") {
  const auto train = [](const std::vector<Device>& devices) {
    manual_seed(5);
    Net net;
    net.to(devices[0]);
    DataParallel parallel(net, devices);
    optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int s = 0; s < 8; ++s) {
      const Tensor x = randn({13, 6});
      sgd.zero_grad();
      // Two forward calls before one backward, as for a GAN's discriminator.
      (square(parallel(x) - 1.0).mean() + abs(parallel(x * 2)).mean()).backward();
      sgd.step();
    }
    return cat({net.fc1.weight.detach().cpu(), net.fc1.bias.detach().cpu().reshape({8, 1})}, 1);
  };
  const Tensor alone = train(cpus(1));
  for (const auto& devices : {cpus(3), hosts(3)}) {
    const Tensor once = train(devices);
    CHECK(largest_difference(once, alone) <= kF32);
    for (int i = 0; i < 5; ++i) CHECK(values(train(devices)) == values(once));
  }
}

TEST_CASE("dp: second gradients") {
  manual_seed(6);
  Net net;
  net.to(kFloat64);
  DataParallel parallel(net, cpus(3));
  const Tensor x = randn({7, 6}, {.dtype = kFloat64});
  const auto second = [&](const std::function<Tensor(const Tensor&)>& forward) {
    net.zero_grad();
    const Tensor leaf = x.clone().requires_grad_();
    const Tensor g = grad({square(forward(leaf)).sum()}, {leaf}, {.create_graph = true})[0];
    square(g).sum().backward();
    return std::vector<Tensor>{leaf.grad(), net.fc1.weight.grad(), net.fc2.weight.grad()};
  };
  const auto expected = second([&](const Tensor& t) { return net(t); });
  const auto got = second([&](const Tensor& t) { return parallel(t); });
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(largest_difference(got[i], expected[i]) <= 1e-11);
}

TEST_CASE("dp: with one device it is the plain call, with its hooks and random numbers") {
  manual_seed(7);
  nn::Sequential net(nn::Linear(6, 4), nn::Dropout(0.5));
  int calls = 0;
  net.register_forward_hook([&](nn::Module&, const std::vector<Tensor>&, const std::vector<Tensor>&) {
    ++calls;
    return Tensor();
  });
  const Tensor x = randn({9, 6});
  DataParallel one(net, cpus(1)), three(net, cpus(3));
  manual_seed(8);
  const auto expected = values(net(x));
  manual_seed(8);
  CHECK(values(one(x)) == expected);
  CHECK(calls == 2);
  three(x);
  CHECK(calls == 3);  // only those of the first replica
}

TEST_CASE("dp: each replica normalises by its own part; the first one's buffers are kept, eval applies to all") {
  for (const auto& devices : {cpus(3), hosts(3)}) {
    manual_seed(9);
    nn::Sequential net(nn::BatchNorm2d(2)), same(nn::BatchNorm2d(2));
    const Tensor x = randn({8, 2, 3, 3}) * 2 + 1;
    net.to(devices[0]);
    DataParallel parallel(net, devices);
    const Tensor y = parallel(x);
    std::vector<Tensor> expected = {same(x.narrow(0, 0, 3))};
    for (const auto& [name, t] : same.named_buffers()) {
      CAPTURE(name);
      for (const auto& [own, b] : net.named_buffers()) {
        if (own == name) CHECK(values(b) == values(t));
      }
    }
    expected.push_back(nn::BatchNorm2d(2)(x.narrow(0, 3, 3)));
    expected.push_back(nn::BatchNorm2d(2)(x.narrow(0, 6, 2)));
    CHECK(largest_difference(y, cat({expected[0], expected[1], expected[2]}, 0)) <= kF32);
    net.eval(), same.eval();
    CHECK(largest_difference(parallel(x), same(x)) <= kF32);
    net.train();
    net[0].eval();  // only one layer
    CHECK(largest_difference(parallel(x), same(x)) <= kF32);
  }
}

TEST_CASE("dp: dropout masks differ between replicas and are the same from run to run") {
  nn::Dropout net(0.5);
  DataParallel parallel(net, cpus(3));
  const Tensor x = ones({6, 40});
  const auto run = [&] {
    manual_seed(11);
    const auto once = values(parallel(x));
    return std::pair(once, values(parallel(x)));
  };
  const auto [first, second] = run();
  CHECK(run() == std::pair(first, second));
  CHECK(first != second);
  const auto part = [&](int r) { return std::vector<float>(first.begin() + r * 80, first.begin() + (r + 1) * 80); };
  CHECK(part(0) != part(1));
  CHECK(part(1) != part(2));
  CHECK(part(0) != part(2));
  manual_seed(11);
  CHECK(part(0) == values(net(ones({2, 40}))));
}

TEST_CASE("dp: replicas inherit the caller's modes; each has a thread and its share of worker threads") {
  manual_seed(12);
  struct Watch : nn::Module {
    nn::Linear& fc = add<nn::Linear>("fc", 4, 2);
    static std::mutex& mutex() {
      static std::mutex m;
      return m;
    }
    static std::set<std::thread::id>& threads() {
      static std::set<std::thread::id> ids;
      return ids;
    }
    Tensor forward(const Tensor& x) override {
      const Tensor y = fc(x);
      const std::lock_guard lock(mutex());
      threads().insert(std::this_thread::get_id());
      CHECK(num_threads() == 2);
      CHECK(y.requires_grad() == grad_enabled());
      CHECK(y.dtype() == (autocast_enabled() ? autocast_dtype() : kFloat32));
      return y;
    }
  };
  const int before = num_threads();
  set_num_threads(6);
  Watch net;
  DataParallel parallel(net, cpus(3));
  const Tensor x = randn({6, 4});
  CHECK(parallel(x).requires_grad());
  CHECK(Watch::threads().size() == 3);
  CHECK_FALSE(Watch::threads().contains(std::this_thread::get_id()));
  {
    const no_grad guard;
    CHECK_FALSE(parallel(x).requires_grad());
  }
  {
    const autocast on(kBFloat16);
    CHECK(parallel(x).dtype() == kBFloat16);
  }
  CHECK(num_threads() == 6);
  net.requires_grad_(false);
  {
    const no_grad guard;
    CHECK_FALSE(parallel(x).requires_grad());
  }
  set_num_threads(before);
}

TEST_CASE("dp: a part of a net on several devices, and one inside another") {
  manual_seed(13);
  Net reference;
  struct Placed : nn::Module {
    Net& encoder = add<Net>("encoder");
    Placed() { encoder.to(other_host(0)); }
    Tensor forward(const Tensor& x) override {
      if (!inner) inner = std::make_unique<DataParallel>(encoder, std::vector<Device>{other_host(0), other_host(1)});
      return (*inner)(x);
    }
    std::unique_ptr<DataParallel> inner;
  };
  hosts(1);
  Placed net;
  net.encoder.load_state_dict(reference.state_dict());
  const Tensor x = randn({9, 6});
  CHECK(largest_difference(net(x), reference(x)) <= kF32);
  // Two replicas, each of which splits its part again.
  DataParallel outer(net, {other_host(0), other_host(0)});
  const auto got = step(
      net, [&](const Tensor& t) { return outer(t); }, x);
  const auto expected = step(
      reference, [&](const Tensor& t) { return reference(t); }, x);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(largest_difference(got[i], expected[i]) <= kF32);
}

TEST_CASE("dp: 0-dim outputs give one element per part; parameters may be outputs") {
  struct Scalars : nn::Module {
    Tensor scale = register_parameter("scale", full({2}, 3.0));
    Tensor forward(const Tensor& x) override { return x.sum(); }
  };
  Scalars net;
  DataParallel parallel(net, cpus(2));
  const Tensor x = tensor({1.f, 2.f, 3.f}).requires_grad_();
  const Tensor y = parallel(x);
  CHECK(values(y) == std::vector<float>{3, 3});
  (y * tensor({1.f, 5.f})).sum().backward();
  CHECK(values(x.grad()) == std::vector<float>{1, 1, 5});
  const auto out = parallel.run({x}, [](nn::Module& replica, const std::vector<Tensor>&) {
    return std::vector<Tensor>{static_cast<Scalars&>(replica).scale};
  });
  CHECK(values(out[0]) == std::vector<float>{3, 3, 3, 3});
  out[0].sum().backward();
  CHECK(values(net.scale.grad()) == std::vector<float>{2, 2});
}

TEST_CASE("dp: errors are the first replica's and leave everything usable") {
  struct Picky : nn::Module {
    nn::Linear& fc = add<nn::Linear>("fc", 2, 2);
    Tensor forward(const Tensor& x) override {
      const float first = x.detach().to_vector<float>()[0];
      if (first < 0) throw std::runtime_error("part " + std::to_string(static_cast<int>(-first)));
      return fc(x);
    }
  };
  Picky net;
  DataParallel parallel(net, cpus(3));
  const Tensor bad = from_data({1.f, 1.f, -2.f, 1.f, -3.f, 1.f}, {3, 2});
  const auto weight = values(net.fc.weight);
  CHECK_THROWS_WITH_AS(parallel(bad), "part 2", std::runtime_error);
  CHECK(values(net.fc.weight) == weight);
  CHECK(net.fc.weight.is_leaf());
  CHECK(largest_difference(parallel(ones({3, 2})), net(ones({3, 2}))) <= kF32);
  CHECK_THROWS_AS(parallel(ones({3, 5})), ShapeError);
  CHECK_THROWS_WITH_AS(parallel(tensor(1.0)), doctest::Contains("inputs are split along their first dimension"),
                       ShapeError);
  const auto none = [](nn::Module&, const std::vector<Tensor>&) { return std::vector<Tensor>{}; };
  CHECK_THROWS_WITH_AS(parallel.run({ones({3}), ones({2})}, none),
                       "[DataParallel] inputs are split along their first dimension: "
                       "one has shape (2,), the first (3,).",
                       ShapeError);
  CHECK_THROWS_AS(parallel.run({}, none), ShapeError);
  CHECK(parallel.run({ones({3})}, none).empty());
  CHECK_THROWS_WITH_AS(DataParallel(net, {}), "[DataParallel] there is no device. Name one or more.", ValueError);
  CHECK_THROWS_WITH_AS(DataParallel(net, hosts(2)),
                       "[DataParallel] fc.weight is on cpu, but the first of the devices is custom0:0. Move the module "
                       "there: module.to(...).",
                       DeviceError);
  CHECK_THROWS_AS(DataParallel(net, {kCpu, other_host(9)}), DeviceError);
  nn::Module& base = net;
  CHECK_THROWS_WITH_AS(DataParallel(base, cpus(2)), doctest::Contains("Pass it by its own type"), ValueError);
  struct Sized : nn::Module {
    explicit Sized(int n) { add<nn::Linear>("fc", n, n); }
  };
  Sized sized(3);
  CHECK_THROWS_WITH_AS(DataParallel(sized, cpus(2)), doctest::Contains("constructor's arguments"), ValueError);
  CHECK_NOTHROW(DataParallel(sized, cpus(2), 3));
}
