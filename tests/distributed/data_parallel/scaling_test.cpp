// Data parallelism with a device per rank: more samples in the time of one rank.
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/function.h>
#include <levin/distributed/ddp.h>
#include <levin/nn/nn.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "distributed/groups.h"

using namespace levin;
using namespace levin::distributed;

namespace {

using Clock = std::chrono::steady_clock;

/// Simulates a device: computing takes time, but no core of this host.
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

/// A network of four layers with one bucket each, whose gradients are averaged over a group.
class Network {
 public:
  explicit Network(const std::shared_ptr<ProcessGroup>& group)
      : weights_(parameters()), reducer_(weights_, group, {.bucket_cap_mb = 1e-3, .first_bucket_mb = 1e-3}) {}

  /// Returns the time of a step in ms.
  double step() const {
    const auto start = Clock::now();
    Tensor x = ones({8, 64});
    for (const Parameter& w : weights_) x = OnDevice::apply(matmul(x, w));
    x.sum().backward();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

 private:
  static std::vector<Parameter> parameters() {
    Generator same(1);
    std::vector<Parameter> weights;
    for (int i = 0; i < 4; ++i)
      weights.push_back({std::to_string(i), randn({64, 64}, {.generator = &same}).requires_grad_(true)});
    return weights;
  }

  std::vector<Parameter> weights_;
  Reducer reducer_;
};

}  // namespace

TEST_CASE("ddp/scaling: four ranks take a step in the time of one, with four times the samples") {
  double one = 1e9, four = 1e9;
  test::in_group(4, [&](ProcessGroup& group) {
    const Network alone(make_process_group("single")), together(group.new_group({0, 1, 2, 3}));
    for (int round = 0; round < 5; ++round) {  // interleaved, so that the machine's load affects both
      group.barrier().wait();
      if (group.rank() == 0) one = std::min(one, alone.step());
      group.barrier().wait();
      const double took = together.step();
      if (group.rank() == 0) four = std::min(four, took);
    }
  });
  MESSAGE("a step takes ", one, " ms on one rank and ", four, " ms on four");
  CHECK(one >= 8 * 20);
  CHECK(four <= 1.25 * one);
}
