#pragma once
// A small network whose training can be inspected step by step, on any device and with any precision.

#include "trainer/toy.h"

#include <levin/trainer/step_runner.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace levin::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns toy_points with probabilities as targets, so that no label is checked during training.
inline data::TensorDataset soft_points(std::int64_t n, std::uint64_t seed = 5) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  const Batch all = toy_points(n, seed).get_batch(rows, Generator(0));
  return data::TensorDataset({all[0], one_hot(all[1], 3).to(kFloat32)});
}

/// Two linear layers with a layer norm between. Reads nothing from the device while it trains.
struct PointNet : LevinModule {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 16);
  nn::LayerNorm& norm = add<nn::LayerNorm>("norm", 16);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 16, 3);
  std::vector<std::int64_t> overflow_at{};  ///< steps whose loss is infinite
  double lr = 0.02;
  bool scheduled = true;
  std::int64_t steps = 0, scheduler_steps = 0;
  DType logits_type = kInt8;

  Tensor forward(const Tensor& x) override { return fc2(relu(norm(fc1(x)))); }
  StepOutput training_step(const Batch& b, int) override {
    const Tensor logits = (*this)(b[0]);
    logits_type = logits.dtype();
    Tensor loss = cross_entropy(logits, b[1]);
    log("loss", loss, {.on_epoch = true});
    if (std::ranges::count(overflow_at, steps++) > 0) loss = loss * kInfinity;
    return loss;
  }
  Optimizers configure_optimizers() override {
    Optimizers adam = optim::AdamW(parameters(), {.lr = lr});
    if (!scheduled) return adam;
    return std::move(adam).schedule([](auto& o) { return optim::StepLR(o, {.step_size = 1, .gamma = 0.97}); },
                                    {.interval = Interval::step});
  }
  void lr_scheduler_step(const SchedulerHandle& scheduler, std::optional<double> metric) override {
    ++scheduler_steps;
    LevinModule::lr_scheduler_step(scheduler, metric);
  }
};

/// A StepRunner without a Trainer.
template <class Model = PointNet>
struct StepByStep {
  StepByStep(const std::string& precision_name, Device device, StepOptions options = {}, bool scheduled = true) {
    manual_seed(4);
    model = std::make_unique<Model>();
    model->scheduled = scheduled;
    precision = make_precision(precision_name);
    strategy = make_strategy("single", device);
    precision->setup(*model);
    strategy->setup(*model);
    optimizers = model->configure_optimizers();
    runner = std::make_unique<StepRunner>(*model, optimizers, *strategy, *precision, hooks, std::move(options));
  }
  /// Trains on one batch of 8 points.
  void step(std::uint64_t seed = 5) {
    const std::vector<std::int64_t> rows{0, 1, 2, 3, 4, 5, 6, 7};
    const Batch batch = soft_points(8, seed).get_batch(rows, Generator(0));
    runner->run(strategy->to_device(batch), 0, /*last=*/false, state);
  }
  double scale() const { return precision->state().template get<double>("scale"); }
  double rate() const { return optimizers.optimizer().param_groups()[0]["lr"]; }

  std::unique_ptr<Model> model;
  std::unique_ptr<PrecisionPlugin> precision;
  std::unique_ptr<Strategy> strategy;
  Optimizers optimizers;
  StepHooks hooks;
  TrainState state;
  std::unique_ptr<StepRunner> runner;
};

}  // namespace levin::test
