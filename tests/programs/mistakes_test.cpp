// Mistakes that people make first: each is answered by one sentence with the values and the remedy.
#include "programs/programs.h"

using namespace levin;

namespace {

std::string message(const std::function<void()>& program) {
  try {
    program();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

struct Classifier : LevinModule {
  nn::Sequential& net = add<nn::Sequential>("net", nn::Flatten(), nn::Linear(12, 3));
  Tensor forward(const Tensor& x) override { return net(x); }
  StepOutput training_step(const Batch& batch, int) override { return cross_entropy(forward(batch[0]), batch[1]); }
  void validation_step(const Batch& batch, int) override {
    log("val_loss", cross_entropy(forward(batch[0]), batch[1]));
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), 0.1); }
};

template <class Module = Classifier>
std::string message_of_fit(const std::function<void(TrainerConfig&)>& change = [](TrainerConfig&) {}) {
  return message([&] {
    data::DataLoader loader(data::TensorDataset({randn({4, 12}), randint(0, 3, {4})}), {.batch_size = 2});
    TrainerConfig config;
    config.max_epochs = 1;
    config.logger = false;
    config.enable_checkpointing = false;
    config.enable_progress_bar = false;
    config.enable_model_summary = false;
    change(config);
    Module module;
    Trainer(config).fit(module, loader, loader);
  });
}

}  // namespace

TEST_CASE("mistakes: shapes and types") {
  auto x = randn({4, 12}), logits = randn({4, 3});
  nn::Linear fc(10, 3);
  CHECK(message([&] { fc(x); }) ==
        "[linear] x is (4, 12), weight is (3, 10): the last size of x must be the weight's second.");
  CHECK(message([&] { matmul(x, x); }) == "[matmul] inner sizes differ: a is (4, 12), b is (4, 12). Transpose b?");
  CHECK(message([&] { x + randn({5}); }) ==
        "[add] shapes (4, 12) and (5,) do not broadcast: 12 and 5 differ at axis 1 of the result. Reshape one, or "
        "unsqueeze a size of 1.");
  CHECK(message([&] { x.view({5, 5}); }) == "[view] shape (5, 5) does not fit 48 elements: its sizes multiply to 25.");
  CHECK(message([&] { x(9); }) == "[index] index 9 is out of range for axis 0 of size 4: use -4 to 3.");
  CHECK(message([&] { x.item<float>(); }) ==
        "[item] a tensor of shape (4, 12) has 48 elements, not 1. Reduce it or index it first.");
  CHECK(message([&] {
          nn::Conv2d(3, 8, 3)(randn({2, 1, 8, 8}));
        }) == "[conv2d] x has 1 channels; weight (8, 3, 3, 3) with 1 groups takes 3.");
  CHECK(message([&] { cross_entropy(logits, full({4}, 3, {.dtype = kInt64})); }) ==
        "[cross_entropy] target 3 at position 0 is outside [0, 3). Labels count from 0; to leave a sample out, give it "
        "ignore_index (-100).");
  CHECK(message([&] {
          cross_entropy(logits, randint(0, 3, {4, 1}));
        }) == "[cross_entropy] target is (4, 1), expected (4,) for logits of (4, 3).");
  CHECK(message([&] {
          bce_with_logits(randn({4, 1}), randn({4}));
        }) == "[bce_with_logits] target is (4,), logits are (4, 1): they have to be of one size.");
  CHECK(message([&] {
          matmul(x, randint(0, 3, {12, 2}));
        }) == "[matmul] a is float32, b is int64: their types have to be equal. Convert with x.to(dtype).");
  CHECK(message([&] { arange(4).mean(); }) ==
        "[mean] needs floating-point values, x is int64; convert it with x.to(kFloat32).");
  CHECK(message([&] {
          auto [a, b] = data::TensorDataset({x, x, x}).all();
        }) == "[batch] the batch holds 3 tensors, and 2 are asked for. Unpack all by batch.as<3>(), or read batch[i].");
}

TEST_CASE("mistakes: gradients and optimizers") {
  nn::Linear fc(2, 3);
  auto x = ones({2, 2});
  CHECK(message([&] { fc(x).backward(); }) ==
        "[backward] the output has shape (2, 3); without a gradient for it only a single element will do. Reduce it "
        "first, or pass the gradient.");
  CHECK(message([&] { x.sum().backward(); }) ==
        "[backward] the output does not require grad: nothing it was computed from does, or it was made under "
        "no_grad.");
  auto loss = fc(x).sum();
  loss.backward();
  CHECK(message([&] { loss.backward(); }) ==
        "[linear] backward ran a second time through a graph whose saved values are gone; pass retain_graph = true to "
        "the first one.");
  CHECK(message([&] { fc.weight.add_(1); }) ==
        "[add_] a leaf that requires grad cannot be edited in place; do it under no_grad, or on a clone.");
  CHECK(message([&] {
          auto y = exp(fc(x));
          y.add_(1);
          y.sum().backward();
        }) ==
        "[exp] a tensor of shape (2, 3) needed for its gradient was changed in place: it is at version 1, expected 0. "
        "Use the out-of-place operation, or clone it first.");
  CHECK(message([&] { fc.load_state_dict(nn::Linear(4, 3).state_dict()); }) ==
        "[load_state_dict] this state is not one of a Linear: \"weight\" has shape (3, 2) here and (3, 4) there. "
        "Nothing was loaded.");
  CHECK(message([&] { optim::SGD(nn::ReLU().parameters(), 0.1); }) ==
        "[SGD] a parameter group is empty. Give it the parameters of a module that has weights.");
  CHECK(message([&] { optim::SGD(fc.parameters(), -0.1); }) ==
        "[SGD] lr is -0.1. Give a value of at least 0 and below inf.");
}

TEST_CASE("mistakes: the Trainer") {
  CHECK(message_of_fit([](auto& c) { c.precision = "fp16"; }).starts_with("--precision fp16: did you mean 16-mixed?"));
  CHECK(message_of_fit([](auto& c) { c.devices = 0; }).starts_with("--devices 0: give auto, -1 for all"));
  CHECK(message_of_fit([](auto& c) { c.callbacks = {EarlyStopping{{.monitor = "val_los"}}}; }) ==
        "[EarlyStopping] the value \"val_los\" was not logged; known are: val_loss. Did you mean val_loss? Correct "
        "monitor, or log it.");
  struct NoOptimizer : LevinModule {
    StepOutput training_step(const Batch& batch, int) override { return mse_loss(batch[0], batch[0]); }
  };
  CHECK(message_of_fit<NoOptimizer>() == "[fit] NoOptimizer has no configure_optimizers. Write one.");
  struct LossPerSample : Classifier {
    StepOutput training_step(const Batch& batch, int) override {
      return cross_entropy(forward(batch[0]), batch[1], {.reduction = Reduction::none});
    }
  };
  CHECK(message_of_fit<LossPerSample>() ==
        "[training_step] the loss has shape (2,). Return one number, e.g. its mean.");
  struct WrongWidth : Classifier {
    nn::Linear& head = add<nn::Linear>("head", 4, 2);
    Tensor forward(const Tensor& x) override { return head(net(x)); }
  };
  CHECK(message_of_fit<WrongWidth>().ends_with(
      "[linear] x is (2, 3), weight is (2, 4): the last size of x must be the weight's second."));
  Classifier module;
  CHECK(message([&] { module.optimizers(); }) ==
        "[optimizers] is for manual optimization during fit. Set automatic_optimization to false in the constructor of "
        "Classifier.");
}
