#pragma once
// A small network with everything that makes resuming hard: dropout, momentum, a scheduler.
#include "support/files.h"

#include <levin/levin.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace levin::test {

/// Points around three centres: x (n, 6) f32, y (n) int64. The same for the same arguments.
inline data::TensorDataset toy_points(std::int64_t n, std::uint64_t seed = 5) {
  Generator rng(seed);
  const Tensor y = randint(0, 3, {n}, {.generator = &rng});
  Tensor x = randn({n, 6}, {.generator = &rng});
  x = x + one_hot(y, 6).to(kFloat32) * 2.0;
  return data::TensorDataset({x, y});
}

struct ToyOptions {
  double dropout = 0.25;
  bool use_sgd = false;
  Interval interval = Interval::step;
};

struct ToyModule : LevinModule {
  explicit ToyModule(ToyOptions o = {}) : options(o), drop(add<nn::Dropout>("drop", o.dropout)) {}

  ToyOptions options;
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 12);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 12, 3);
  nn::Dropout& drop;
  std::vector<double> losses;
  std::vector<double> rates;

  Tensor forward(const Tensor& x) override { return fc2(drop(relu(fc1(x)))); }

  StepOutput training_step(const Batch& b, int) override {
    const Tensor loss = cross_entropy((*this)(b[0]), b[1]);
    losses.push_back(loss.item<double>());
    log("train_loss", loss, {.prog_bar = true, .on_epoch = true});
    return loss;
  }
  void validation_step(const Batch& b, int) override {
    const Tensor logits = (*this)(b[0]);
    log("val_loss", cross_entropy(logits, b[1]));
    log("val_acc", accuracy(logits, b[1]), {.prog_bar = true});
  }
  void test_step(const Batch& b, int) override { log("test_acc", accuracy((*this)(b[0]), b[1])); }
  Optimizers configure_optimizers() override {
    const auto schedule = [](auto& opt) { return optim::StepLR(opt, {.step_size = 3, .gamma = 0.7}); };
    if (options.use_sgd)
      return Optimizers(optim::SGD(parameters(), {.lr = 0.1, .momentum = 0.9}))
          .schedule(schedule, {.interval = options.interval});
    return Optimizers(optim::AdamW(parameters(), {.lr = 0.02})).schedule(schedule, {.interval = options.interval});
  }
};

/// Saves at every save point, under a number.
struct SaveAlways : CheckpointPolicy {
  explicit SaveAlways(std::string d) : dir(std::move(d)) {}
  std::string dir;
  int count = 0;
  std::vector<SavePoint> points;

  std::vector<CheckpointAction> decide(RunContext&, SavePoint point) override {
    points.push_back(point);
    return {{CheckpointAction::Kind::save, dir + "/" + std::to_string(count++), {}}};
  }
  std::vector<CheckpointAction> decide_interrupted(RunContext&) override { return {}; }
  std::string find(const std::string&) const override { return {}; }
  std::string directory() const override { return dir; }
};

/// Returns the configuration with all output to screen and disk disabled.
inline TrainerConfig quiet(TrainerConfig c = {}) {
  c.enable_progress_bar = c.enable_model_summary = c.enable_checkpointing = c.logger = false;
  return c;
}

inline std::vector<std::vector<float>> values_of(const StateDict& tensors) {
  std::vector<std::vector<float>> out;
  for (const auto& [name, t] : tensors) out.push_back(t.to_vector<float>());
  return out;
}
inline std::vector<std::vector<float>> values_of(const nn::Module& m) { return values_of(m.state_dict()); }

template <class E, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace levin::test
