#pragma once
// Short training runs, eager or with a captured step, that record all bits.

#include "support/replayed.h"

#include <levin/autograd/autocast.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/ops.h>
#include <levin/kernels/cuda.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace levin::test {

/// The results that must agree between two runs.
struct Outcome {
  std::vector<Bits> losses;           ///< after each step
  std::vector<Bits> weights;          ///< all parameters after each step
  std::vector<double> scales;         ///< after each step
  std::map<std::string, Bits> state;  ///< of the module and the optimizer at the end
};

class TrainingRun;

struct Recipe {
  std::function<std::unique_ptr<nn::Module>()> net;
  std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Parameter>&)> optimizer;
  std::function<void(TrainingRun&, int)> before_step{};  ///< after the batch is loaded
  bool scaled = false;                                   ///< autocast to float16, and a GradScaler
};

class TrainingRun {
 public:
  static constexpr int kSteps = 9, kEager = 3;

  explicit TrainingRun(Recipe r) : recipe_(std::move(r)) {
    manual_seed(1);
    net = recipe_.net();
    net->to(cuda(0));
    optimizer = recipe_.optimizer(net->parameters());
    x = zeros({8, 1, 4, 3}, {.device = cuda(0)});
    y = zeros({8}, {.dtype = kInt64, .device = cuda(0)});
  }

  void load(int batch) {
    Generator g(static_cast<std::uint64_t>(100 + batch));
    x.copy_(randn({8, 1, 4, 3}, {.generator = &g}));
    y.copy_(randint(0, 5, {8}, {.generator = &g}));
  }
  void forward_backward() {
    {
      const autocast on(kHalf, recipe_.scaled);
      loss = cross_entropy(net->forward(x), y);
    }
    scaler.scale(loss).backward();
  }
  void step() {
    optimizer->zero_grad();
    forward_backward();
    scaler.step(*optimizer);
    scaler.update();
  }
  Bits weights() const { return bits_of_weights(*net); }
  /// Runs all steps. With `recorded`, the first steps and the last are eager.
  Outcome go(bool recorded) {
    Outcome o;
    cuda::Graph graph;
    manual_seed(7);
    for (int i = 0; i < kSteps; ++i) {
      load(i);
      if (recipe_.before_step) recipe_.before_step(*this, i);
      if (recorded && i == kEager) graph.capture([this] { step(); });
      if (recorded && i >= kEager && i < kSteps - 1)
        graph.replay();
      else
        step();
      o.losses.push_back(bits(loss));
      o.weights.push_back(weights());
      o.scales.push_back(scaler.get_scale());
    }
    o.state = bits_of_state(*net, *optimizer);
    return o;
  }

 private:
  Recipe recipe_;

 public:
  std::unique_ptr<nn::Module> net;
  std::unique_ptr<optim::Optimizer> optimizer;
  GradScaler scaler{{.enabled = recipe_.scaled}};
  Tensor x, y, loss;
};

/// Runs the recipe eagerly and captured, and compares all results. Returns the captured run.
inline Outcome check_replays_are_eager(const Recipe& recipe) {
  const Outcome expected = TrainingRun(recipe).go(false);
  Outcome actual = TrainingRun(recipe).go(true);
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(actual.losses[i] == expected.losses[i]);
    CHECK(actual.weights[i] == expected.weights[i]);
    if (i > 0) CHECK(expected.losses[i] != expected.losses[i - 1]);
  }
  CHECK(actual.scales == expected.scales);
  CHECK(actual.state.size() == expected.state.size());
  for (const auto& [name, values] : expected.state) {
    CAPTURE(name);
    CHECK(actual.state.at(name) == values);
  }
  return actual;
}

}  // namespace levin::test
