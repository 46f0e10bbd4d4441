#include "programs/programs.h"

using namespace levin;
using levin::test::Losses, levin::test::numbers, levin::test::with_options;

namespace {

struct Block : nn::Module {
  int64_t in, out, stride;
  Block(int64_t i, int64_t o, int64_t s) : in(i), out(o), stride(s) {
    if (stride != 1 || in != out)
      shortcut.push_back(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false})).push_back(nn::BatchNorm2d(out));
  }
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", in, out, 3, {.stride = stride, .padding = 1, .bias = false});
  nn::BatchNorm2d& bn1 = add<nn::BatchNorm2d>("bn1", out);
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", out, out, 3, {.padding = 1, .bias = false});
  nn::BatchNorm2d& bn2 = add<nn::BatchNorm2d>("bn2", out);
  nn::Sequential& shortcut = add<nn::Sequential>("shortcut");

  Tensor forward(const Tensor& x) override {
    auto y = relu(bn1(conv1(x)));
    return relu(bn2(conv2(y)) + shortcut(x));
  }
};

struct ResNet : LevinModule {
  nn::Conv2d& stem = add<nn::Conv2d>("stem", 3, 8, 3, {.padding = 1, .bias = false});
  nn::Sequential& blocks = add<nn::Sequential>("blocks", Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2));
  nn::Linear& fc = add<nn::Linear>("fc", 32, 10);

  Tensor forward(const Tensor& x) override { return fc(blocks(relu(stem(x))).mean({2, 3})); }
  StepOutput training_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    auto loss = cross_entropy(forward(x), y, {.label_smoothing = 0.1});
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  void validation_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    log("val_accuracy", accuracy(forward(x), y));
  }
  Optimizers configure_optimizers() override {
    const optim::OneCycleOptions one_cycle{.max_lr = 0.1, .total_steps = estimated_stepping_batches()};
    return Optimizers(optim::SGD(parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true}))
        .schedule([&](auto& o) { return optim::OneCycleLR(o, one_cycle); }, {.interval = Interval::step});
  }
};

void run() {
  data::TensorDataset data({numbers({64, 3, 12, 12}, 7), (numbers({64}, 8).abs() * 10).to(kInt64)});
  data::DataLoader train(data, {.batch_size = 16}), val(data, {.batch_size = 32});
  ResNet model;
  Trainer trainer(with_options({.max_epochs = 5, .callbacks = {Losses("residual_network")}}));
  trainer.fit(model, train, val);
  levin::test::check_result("residual_network/val_accuracy", trainer.callback_metrics().at("val_accuracy"));
}

}  // namespace

TEST_CASE("a residual network trains as in PyTorch") { levin::test::in_both_precisions(run); }
