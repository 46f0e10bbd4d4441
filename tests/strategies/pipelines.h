#pragma once
// A network of stages, and fits of it under --strategy pipeline and in one process.

#include <levin/trainer/metrics.h>

#include "strategies/replicas.h"
#include "strategies/sharded_fits.h"

namespace levin::test {

struct StagedOptions {
  bool use_sgd = true;
  bool schedules = false;
  double dropout = 0;
};

/// Logs in every way. Its step calls the Sequential, as programs do that know nothing of pipelines.
struct StagedModule : LevinModule {
  explicit StagedModule(StagedOptions o = {}) : options(o) {}
  StagedOptions options;
  nn::Sequential& net = add<nn::Sequential>(
      "net", nn::Sequential(nn::Linear(6, 12), nn::Tanh(), nn::Dropout(options.dropout), nn::Linear(12, 10), nn::Tanh(),
                            nn::Linear(10, 8), nn::Dropout(options.dropout), nn::Tanh(), nn::Linear(8, 3)));
  metrics::Accuracy& seen = add_metric<metrics::Accuracy>("seen", metrics::StatScoresOptions{.num_classes = 3});
  metrics::Accuracy& val = add_metric<metrics::Accuracy>("val", metrics::StatScoresOptions{.num_classes = 3});

  Tensor forward(const Tensor& x) override { return net(x); }
  StepOutput training_step(const Batch& b, int index) override {
    const Tensor scores = net(b[0]), loss = cross_entropy(scores, b[1]);
    log("loss", loss, {.on_step = true, .on_epoch = true, .sync_dist = true});
    log("largest", amax(scores), {.on_epoch = true, .reduce = Reduce::max});
    log("samples", static_cast<double>(b.size()), {.on_epoch = true, .reduce = Reduce::sum});
    log("index", index);
    seen(scores, b[1]);
    log("seen", seen, {.on_epoch = true});
    return loss;
  }
  void validation_step(const Batch& b, int) override {
    const Tensor scores = net(b[0]);
    log("val_loss", cross_entropy(scores, b[1]), {.sync_dist = true});
    val.update(scores, b[1]);
    log("val_acc", val);
  }
  Optimizers configure_optimizers() override {
    Optimizers made = options.use_sgd ? Optimizers(optim::SGD(parameters(), {.lr = 0.3, .momentum = 0.9}))
                                      : Optimizers(optim::AdamW(parameters(), {.lr = 0.02}));
    if (!options.schedules) return made;
    return std::move(made).schedule([](auto& opt) { return optim::StepLR(opt, {.step_size = 3, .gamma = 0.7}); },
                                    {.interval = Interval::step});
  }
};

struct StagedResult {
  std::vector<std::vector<float>> weights;
  LoggedValues::Values logged;
  std::vector<float> predictions;
};

/// A fit, in which it evaluates, and a prediction after it. 61 samples: batches of 16 and 13, whose parts have 4 and 1.
template <class Module = StagedModule>
StagedResult staged_fit(const std::string& strategy, TrainerConfig config = {}, const StagedOptions& options = {}) {
  manual_seed(3);
  Module model(options);
  StagedResult result;
  data::DataLoader train(toy_points(61), {.batch_size = 16, .shuffle = true, .seed = 7});
  data::DataLoader val(toy_points(29, 9), {.batch_size = 16});
  config = with_strategy(strategy, std::move(config));
  config.max_epochs = 2;
  config.callbacks.push_back(LoggedValues(result.logged));
  Trainer trainer(config);
  trainer.fit(model, train, val);
  result.weights = values_of(model);
  for (const Tensor& t : trainer.predict(model, DataModule{.predict = borrowed(val)})) {
    const auto part = t.to_vector<float>();
    result.predictions.insert(result.predictions.end(), part.begin(), part.end());
  }
  return result;
}

inline void equals(const StagedResult& one, const StagedResult& several, double bound = 1e-6) {
  CHECK(largest_difference(one.weights, several.weights) <= bound);
  CHECK(difference(one.logged, several.logged) <= 10 * bound);
  CHECK(largest_difference({one.predictions}, {several.predictions}) <= 10 * bound);
}

}  // namespace levin::test
