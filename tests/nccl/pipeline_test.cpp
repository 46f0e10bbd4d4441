// Stages of one network on CUDA devices, one process each.
#include "nccl/device_fits.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Staged : LevinModule {
  nn::Sequential& net = add<nn::Sequential>(
      "net", nn::Sequential(nn::Linear(6, 12), nn::Tanh(), nn::Linear(12, 8), nn::Tanh(), nn::Linear(8, 3)));
  Tensor forward(const Tensor& x) override { return net(x); }
  StepOutput training_step(const Batch& b, int) override {
    const Tensor loss = cross_entropy(net(b[0]), b[1]);
    log("loss", loss, {.on_epoch = true});
    return loss;
  }
  void validation_step(const Batch& b, int) override { log("val_loss", cross_entropy(net(b[0]), b[1])); }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.3, .momentum = 0.9}); }
};

struct Fitted {
  std::vector<std::vector<float>> weights;
  double loss = 0, val_loss = 0;
};

Fitted fit(const std::string& strategy, TrainerConfig config) {
  manual_seed(3);
  Staged model;
  data::DataLoader train(toy_points(46), {.batch_size = 16, .shuffle = true, .seed = 7});
  data::DataLoader val(toy_points(13, 9), {.batch_size = 8});
  config.max_epochs = 2;
  Trainer trainer(on_devices(strategy, config));
  trainer.fit(model, train, val);
  return {values_of(model), trainer.metrics().find("loss_epoch").value(), trainer.metrics().find("val_loss").value()};
}

void check_pipeline(int devices) {
  pass_on_devices(devices, [] {
    for (const TrainerConfig& config :
         {TrainerConfig{}, TrainerConfig{.accumulate_grad_batches = 2, .gradient_clip_val = 0.5}}) {
      const Fitted one = fit("single", config), stages = fit("pipeline", config);
      CHECK(largest_difference(one.weights, stages.weights) <= 1e-6);
      CHECK(stages.loss == approx(one.loss, {.relative = 1e-6}));
      CHECK(stages.val_loss == approx(one.val_loss, {.relative = 1e-6}));
    }
  });
}

}  // namespace

TEST_CASE("nccl pipeline: two stages on two devices train and evaluate as on one device") { check_pipeline(2); }
TEST_CASE("nccl pipeline: three stages, with micro-batches in both directions at a time") { check_pipeline(3); }
