#pragma once
// Fits of a small network under a strategy that shards state between ranks, and under ddp.

#include "strategies/ranks.h"

namespace levin::test {

/// Several launches in one test case, each with its number of ranks: a rank runs the body of its own launch alone.
inline void in_turn(const std::vector<std::pair<int, std::function<void()>>>& launches) {
  const char* own = std::getenv("LEVIN_TEST_LAUNCH");
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (distributed::is_launched()) {
      if (std::to_string(i) == own) return pass_on(launches[i].first, launches[i].second);
      continue;
    }
    setenv("LEVIN_TEST_LAUNCH", std::to_string(i).c_str(), 1);
    pass_on(launches[i].first, launches[i].second);
  }
}

/// Two optimizers with manual optimization, each on a batch.
struct Duel : LevinModule {
  Duel() { automatic_optimization = false; }
  nn::Linear& a = add<nn::Linear>("a", 6, 8);
  nn::Linear& b = add<nn::Linear>("b", 8, 3);
  StepOutput training_step(const Batch& batch, int) override {
    auto [first, second] = optimizers<2>();
    for (auto* opt : {&first, &second}) {
      const auto only = opt->toggle_model();
      manual_backward(loss(batch));
      opt->clip_gradients(0.1);
      opt->step();
      opt->zero_grad();
    }
    return {};
  }
  Tensor loss(const Batch& batch) { return cross_entropy(b(relu(a(batch[0]))), batch[1]); }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::SGD(a.parameters(), {.lr = 0.1, .momentum = 0.9}))
        .add(optim::AdamW(b.parameters(), {.lr = 0.01}));
  }
};

struct FitOptions {
  TrainerConfig config{};
  bool use_sgd = false;
  double dropout = 0;
  std::int64_t samples = 48, whole = 12;  ///< of a step's batches of all ranks together
};

/// Weights after a fit; with "single" one rank has the whole batch.
inline std::vector<std::vector<float>> fit_with(const std::string& strategy, const FitOptions& o) {
  manual_seed(3);
  ToyModule model({.dropout = o.dropout, .use_sgd = o.use_sgd});
  const std::int64_t each = strategy == "single" ? o.whole : o.whole / ranks();
  data::DataLoader train(toy_points(o.samples), {.batch_size = each, .shuffle = true, .seed = 7});
  Trainer trainer(with_strategy(strategy, o.config));
  trainer.fit(model, train);
  return values_of(model);
}

}  // namespace levin::test
