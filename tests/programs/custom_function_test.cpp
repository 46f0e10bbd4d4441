#include "programs/programs.h"

using namespace levin;
using levin::test::Losses, levin::test::numbers, levin::test::with_options;

namespace {

struct Squareplus : Function<Squareplus> {
  static Tensor forward(Context& c, const Tensor& x) {
    auto root = sqrt(x * x + 4);
    c.save(x, root);
    return (x + root) / 2;
  }
  static Tensor backward(Context& c, const Tensor& g) { return g * (1 + c.saved(0) / c.saved(1)) / 2; }
};

struct MaxError : metrics::Metric {
  MaxError() : Metric("MaxError") { add_state("worst", tensor(0.0), metrics::StateReduce::max); }
  void add(const Tensor& predicted, const Tensor& target) override {
    gather("worst", (predicted - target).abs().max());
  }
  Tensor result() const override { return state("worst"); }
};

struct HalveRate : Callback {
  void on_train_epoch_end(RunContext& run) override {
    for (auto& group : run.optimizers->optimizer().param_groups()) group["lr"] *= 0.5;
  }
};

struct Fit : LevinModule {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 2, 16);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 16, 1);
  MaxError& max_error = add_metric<MaxError>("max_error");

  Tensor forward(const Tensor& x) override { return fc2(Squareplus::apply(fc1(x))).squeeze(1); }
  StepOutput training_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    return mse_loss(forward(x), y);
  }
  void validation_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    max_error.update(forward(x), y);
    log("max_error", max_error);
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.02, .momentum = 0.9}); }
};

void run() {
  auto x = numbers({64, 2}, 4);
  data::TensorDataset data({x, x(Slice(), 0) * x(Slice(), 1)});
  data::DataLoader loader(data, {.batch_size = 16});
  Fit model;
  Trainer trainer(with_options({.max_epochs = 5, .callbacks = {Losses("custom_function"), HalveRate()}}));
  trainer.fit(model, loader, loader);
  levin::test::check_result("custom_function/max_error", trainer.callback_metrics().at("max_error"));
}

}  // namespace

TEST_CASE("a custom Function, a callback and a metric train as in PyTorch") { levin::test::in_both_precisions(run); }
