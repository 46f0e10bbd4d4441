#pragma once
// A classifier of five kinds of clothes: a backbone, which another task can reuse, and a head.

#include <levin/levin.h>

struct LitClothes : levin::LevinModule {
  /// Classifies the classes first_class to first_class + 4 of Fashion-MNIST.
  LitClothes(std::int64_t first_class_, double lr_) : first_class(first_class_), lr(lr_) {}

  std::int64_t first_class;
  double lr;
  levin::nn::Sequential& backbone = add<levin::nn::Sequential>("backbone", make_backbone());
  levin::nn::Linear& head = add<levin::nn::Linear>("head", 800, 5);

  levin::Tensor forward(const levin::Tensor& x) override { return head(backbone(x)); }

  levin::StepOutput training_step(const levin::Batch& b, int) override {
    const auto loss = cross_entropy((*this)(b[0]), b[1] - first_class);
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  void validation_step(const levin::Batch& b, int) override { evaluate(b, "val"); }
  void test_step(const levin::Batch& b, int) override { evaluate(b, "test"); }

  /// Optimizes the parameters that require grad now: all of them, or only the head's while a callback has frozen the
  /// backbone.
  levin::Optimizers configure_optimizers() override {
    return levin::optim::AdamW(levin::BaseFinetuning::trainable_parameters(*this, *this), {.lr = lr});
  }

 private:
  static levin::nn::Sequential make_backbone() {
    using namespace levin::nn;
    return Sequential(Conv2d(1, 16, 5, {.padding = 2}), ReLU(), MaxPool2d(2), Conv2d(16, 32, 5), ReLU(), MaxPool2d(2),
                      Flatten());
  }
  void evaluate(const levin::Batch& b, const std::string& split) {
    const auto logits = (*this)(b[0]);
    log(split + "_loss", cross_entropy(logits, b[1] - first_class));
    log(split + "_acc", accuracy(logits, b[1] - first_class), {.prog_bar = true});
  }
};
