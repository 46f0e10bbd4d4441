#pragma once
// A network of stages, and fits of it under --strategy pipeline and in one process.

#include "strategies/logged_fits.h"
#include "strategies/sharded_fits.h"

namespace levin::test {

struct StagedOptions {
  bool use_sgd = true;
  bool schedules = false;
  double dropout = 0;
};

/// Its steps call the Sequential, as those of programs do that know nothing of pipelines.
struct StagedModule : LogsInEveryWay {
  explicit StagedModule(StagedOptions o = {}) : options(o) {}
  StagedOptions options;
  nn::Sequential& net = add<nn::Sequential>(
      "net", nn::Sequential(nn::Linear(6, 12), nn::Tanh(), nn::Dropout(options.dropout), nn::Linear(12, 10), nn::Tanh(),
                            nn::Linear(10, 8), nn::Dropout(options.dropout), nn::Tanh(), nn::Linear(8, 3)));

  Tensor forward(const Tensor& x) override { return net(x); }
  Optimizers configure_optimizers() override {
    Optimizers made = options.use_sgd ? Optimizers(optim::SGD(parameters(), {.lr = 0.3, .momentum = 0.9}))
                                      : Optimizers(optim::AdamW(parameters(), {.lr = 0.02}));
    if (!options.schedules) return made;
    return std::move(made).schedule([](auto& opt) { return optim::StepLR(opt, {.step_size = 3, .gamma = 0.7}); },
                                    {.interval = Interval::step});
  }
};

/// 61 samples: batches of 16 and 13, whose parts have 4 and 1.
template <class Module = StagedModule>
FitResult staged_fit(const std::string& strategy, TrainerConfig config = {}, const StagedOptions& options = {}) {
  manual_seed(3);
  Module model(options);
  data::DataLoader train(toy_points(61), {.batch_size = 16, .shuffle = true, .seed = 7});
  data::DataLoader val(toy_points(29, 9), {.batch_size = 16});
  config = with_strategy(strategy, std::move(config));
  config.max_epochs = 2;
  return fit_and_predict(model, config, train, val);
}

}  // namespace levin::test
