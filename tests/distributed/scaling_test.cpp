// Data parallelism where each rank has a device of its own: more samples in the time of one rank's.
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/function.h>
#include <levin/distributed/ddp.h>
#include <levin/nn/nn.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "distributed/groups.h"

using namespace levin;
using namespace levin::distributed;

namespace {

using Clock = std::chrono::steady_clock;

/// What a device computes takes time, but no core of this host.
struct OnDevice : Function<OnDevice> {
  static Tensor forward(Context&, const Tensor& x) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return x * 1.0;
  }
  static Tensor backward(Context&, const Tensor& g) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return g;
  }
};

/// The fastest step of rank 0 in ms, of a network of four layers with a bucket each.
double step_of(int ranks) {
  double best = 1e9;
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  test::in_group(ranks, [&](ProcessGroup& of_all) {
    const auto group = of_all.new_group(all);
    Generator own(static_cast<std::uint64_t>(group->rank()));
    std::vector<Parameter> weights;
    for (int i = 0; i < 4; ++i) {
      const Tensor w = randn({64, 64}, {.generator = &own});
      group->broadcast(w, 0).wait();
      weights.push_back({std::to_string(i), w.requires_grad_(true)});
    }
    const Reducer reducer(weights, group, {.bucket_cap_mb = 1e-3, .first_bucket_mb = 1e-3});
    for (int step = 0; step < 5; ++step) {
      group->barrier().wait();
      const auto start = Clock::now();
      Tensor x = ones({8, 64});
      for (const Parameter& w : weights) x = OnDevice::apply(matmul(x, w));
      x.sum().backward();
      const std::chrono::duration<double, std::milli> took = Clock::now() - start;
      if (group->rank() == 0) best = std::min(best, took.count());
    }
  });
  return best;
}

}  // namespace

TEST_CASE("ddp/scaling: four ranks step in the time of one, with four times the samples") {
  const double one = step_of(1), four = step_of(4);
  CHECK(one >= 8 * 20);
  CHECK(four <= 1.25 * one);
}
