#pragma once
// Fits of a module that logs in every way, and the results to compare.

#include <levin/trainer/metrics.h>

#include "strategies/replicas.h"

namespace levin::test {

/// A classifier of three kinds; forward is the derived module's.
struct LogsInEveryWay : LevinModule {
  metrics::Accuracy& seen = add_metric<metrics::Accuracy>("seen", metrics::StatScoresOptions{.num_classes = 3});
  metrics::Accuracy& val = add_metric<metrics::Accuracy>("val", metrics::StatScoresOptions{.num_classes = 3});

  StepOutput training_step(const Batch& b, int index) override {
    const Tensor scores = (*this)(b[0]), loss = cross_entropy(scores, b[1]);
    log("loss", loss, {.on_step = true, .on_epoch = true, .sync_dist = true});
    log("largest", amax(scores), {.on_epoch = true, .reduce = Reduce::max});
    log("samples", static_cast<double>(b.size()), {.on_epoch = true, .reduce = Reduce::sum});
    log("index", index);
    seen(scores, b[1]);
    log("seen", seen, {.on_epoch = true});
    return loss;
  }
  void validation_step(const Batch& b, int) override {
    const Tensor scores = (*this)(b[0]);
    log("val_loss", cross_entropy(scores, b[1]), {.sync_dist = true});
    val.update(scores, b[1]);
    log("val_acc", val);
  }
};

struct FitResult {
  std::vector<std::vector<float>> weights;
  LoggedValues::Values logged;
  std::vector<float> predictions;
};

/// Runs a fit with validation, and then a prediction.
inline FitResult fit_and_predict(LevinModule& model, TrainerConfig config, data::DataLoader& train,
                                 data::DataLoader& val) {
  FitResult result;
  config.callbacks.push_back(LoggedValues(result.logged));
  Trainer trainer(config);
  trainer.fit(model, train, val);
  result.weights = values_of(model);
  const Predictions predictions = trainer.predict(model, val);
  for (const Tensor& t : predictions[0]) {
    const auto part = t.to_vector<float>();
    result.predictions.insert(result.predictions.end(), part.begin(), part.end());
  }
  return result;
}

inline void equals(const FitResult& one, const FitResult& several, double bound = 1e-6) {
  CHECK(largest_difference(one.weights, several.weights) <= bound);
  CHECK(difference(one.logged, several.logged) <= 10 * bound);
  CHECK(largest_difference(one.predictions, several.predictions) <= 10 * bound);
}

}  // namespace levin::test
