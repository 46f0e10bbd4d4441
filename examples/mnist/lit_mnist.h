#pragma once
// The network with its training, as the Trainer wants it.

#include "nets.h"

struct LitMnist : levin::LevinModule {
  LitMnist(const std::string& model, double lr) : net(add<levin::nn::Sequential>("net", make_net(model))), max_lr(lr) {}

  levin::nn::Sequential& net;
  double max_lr;

  levin::Tensor forward(const levin::Tensor& x) override { return net(x); }

  levin::StepOutput training_step(const levin::Batch& b, int) override {
    const auto loss = cross_entropy(net(b[0]), b[1]);
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  void validation_step(const levin::Batch& b, int) override { evaluate(b, "val"); }
  void test_step(const levin::Batch& b, int) override { evaluate(b, "test"); }

  levin::Optimizers configure_optimizers() override {
    return levin::Optimizers(levin::optim::AdamW(net.parameters(), {.lr = max_lr / 25}))
        .schedule([this](auto& opt) {
          return levin::optim::OneCycleLR(opt, {.max_lr = max_lr, .total_steps = estimated_stepping_batches()});
        }, {.interval = levin::Interval::step});
  }

 private:
  void evaluate(const levin::Batch& b, const std::string& split) {
    const auto logits = net(b[0]);
    log(split + "_loss", cross_entropy(logits, b[1]), {.sync_dist = true});
    log(split + "_acc", accuracy(logits, b[1]), {.prog_bar = true, .sync_dist = true});
  }
};
