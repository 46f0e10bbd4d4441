#pragma once
// The network of the recipes of docs/from_pytorch.md; the lines between the markers are on the page.
#include <levin/levin.h>

#include <string>
#include <utility>
#include <vector>

namespace levin::test {

// clang-format off
// page begins
struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 16);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 16, 3);
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};

struct Lit : LevinModule {
  Net& net = add<Net>("net");
  StepOutput training_step(const Batch& batch, int) override {
    const auto& [x, y] = batch;
    return cross_entropy(net(x), y);
  }
  void validation_step(const Batch& batch, int) override {
    const auto& [x, y] = batch;
    log("val_acc", accuracy(net(x), y), {.prog_bar = true});
  }
  Optimizers configure_optimizers() override { return optim::AdamW(parameters(), {.lr = 1e-2}); }
};
// page ends
// clang-format on

}  // namespace levin::test
