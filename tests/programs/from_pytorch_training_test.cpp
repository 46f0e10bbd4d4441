// The recipes of docs/from_pytorch.md for a whole training: mixed precision, several ranks, resuming, a loop.
#include "programs/from_pytorch.h"
#include "support/comparison.h"
#include "support/files.h"
#include "trainer/processes.h"
#include "trainer/toy.h"

#include <levin/interop/safetensors.h>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace levin;
using namespace levin::test;

namespace {

// clang-format off
// page begins
void fit_in_half(Lit& model, data::DataLoader& loader, TrainerConfig config) {
  config.precision = "16-mixed";                                          // or --precision 16-mixed
  config.gradient_clip_val = 1.0;
  Trainer(config).fit(model, loader);
}

void loop_in_half(Net& net, data::DataLoader& loader) {                   // the same in one's own loop
  optim::AdamW opt(net.parameters(), {.lr = 1e-2});
  GradScaler scaler;
  for (const auto& [x, y] : loader) {
    Tensor loss;
    {
      autocast on(kHalf);                                                 // with torch.autocast(...):
      loss = cross_entropy(net(x), y);
    }
    opt.zero_grad();
    scaler.scale(loss).backward();
    scaler.unscale_(opt);
    optim::clip_grad_norm_(net.parameters(), 1.0);
    scaler.step(opt);
    scaler.update();
  }
}
// page ends

// page begins
void fit_on_two_ranks(Lit& model, data::DataLoader& loader, TrainerConfig config) {
  config.strategy = "ddp";                                                // or --strategy ddp --devices 2
  config.devices = 2;
  Trainer(config).fit(model, loader);                                     // starts the program again for rank 1
}
// page ends

// page begins
void fit_for(std::int64_t epochs, Lit& model, data::DataLoader& loader, const std::string& dir,
             TrainerConfig config, const std::string& ckpt_path = {}) {
  config.max_epochs = epochs;
  config.callbacks = {ModelCheckpoint({.dirpath = dir})};
  Trainer(config).fit(model, loader, {}, ckpt_path);                      // "last", "best", or a folder
}
// page ends

// page begins
double own_loop(Net& net, data::DataLoader& train, data::DataLoader& val, const std::string& file) {
  optim::SGD opt(net.parameters(), {.lr = 0.2, .momentum = 0.9});
  optim::CosineAnnealingLR scheduler(opt, 20);
  for (int epoch = 0; epoch < 20; ++epoch) {
    net.train();
    int batches = 0;
    for (const auto& [x, y] : train) {
      (cross_entropy(net(x), y) / 2).backward();                          // two batches make a step
      if (++batches % 2 != 0) continue;
      optim::clip_grad_norm_(net.parameters(), 1.0);
      opt.step();
      opt.zero_grad();
    }
    scheduler.step();
  }
  net.eval();
  no_grad guard;                                                          // until the end of this scope
  double right = 0, total = 0;
  for (const auto& [x, y] : val) {
    right += (net(x).argmax(1) == y).sum().item<double>();
    total += static_cast<double>(y.numel());
  }
  interop::save_safetensors(file, net.state_dict());                      // torch.save(net.state_dict(), file)
  return right / total;
}
// page ends
// clang-format on

data::DataLoader shuffled(std::int64_t batch_size) {
  return data::DataLoader(toy_points(48), {.batch_size = batch_size, .shuffle = true});
}

}  // namespace

TEST_CASE("from_pytorch.md: mixed precision by the Trainer and by a loop gives the same bits") {
  manual_seed(1);
  Lit model;
  auto loader = shuffled(8);
  fit_in_half(model, loader, quiet({.max_epochs = 1}));

  manual_seed(1);
  Lit same;
  auto again = shuffled(8);
  loop_in_half(same.net, again);
  CHECK(values_of(same) == values_of(model));
  CHECK(same.net.fc1.weight.dtype() == kFloat32);

  manual_seed(1);
  Lit full;
  auto third = shuffled(8);
  Trainer(quiet({.max_epochs = 1, .gradient_clip_val = 1.0})).fit(full, third);
  CHECK(values_of(full) != values_of(model));  // so the products were computed in float16
  CHECK(largest_difference(values_of(full), values_of(model)) < 0.02);
}

TEST_CASE("from_pytorch.md: two ranks train as one with the whole batch") {
  pass_on(2, [] {
    manual_seed(2);
    Lit alone;
    auto whole = shuffled(8);
    Trainer(quiet({.max_epochs = 3, .accelerator = "cpu", .devices = 1, .strategy = "single"})).fit(alone, whole);

    manual_seed(2);
    Lit model;
    auto share = shuffled(4);
    fit_on_two_ranks(model, share, quiet({.max_epochs = 3, .accelerator = "cpu", .timeout = 60}));
    CHECK(largest_difference(values_of(alone), values_of(model)) <= 1e-6);
    manual_seed(2);
    CHECK(differs(values_of(alone), values_of(Lit()), 1e-3));  // training has changed the weights
  });
}

TEST_CASE("from_pytorch.md: a resumed run ends with the bits of an uninterrupted one") {
  const TempDir folder;
  manual_seed(3);
  Lit whole;
  auto loader = shuffled(8);
  fit_for(4, whole, loader, folder.path / "whole", quiet());

  manual_seed(3);
  Lit first;
  auto again = shuffled(8);
  fit_for(2, first, again, folder.path / "parts", quiet());
  CHECK(values_of(first) != values_of(whole));

  manual_seed(99);  // neither the seed nor the new weights matter
  Lit second;
  auto third = shuffled(8);
  fit_for(4, second, third, folder.path / "parts", quiet(), "last");
  CHECK(values_of(second) == values_of(whole));
}

TEST_CASE("from_pytorch.md: a loop of one's own learns, and its weights are read back") {
  const TempDir folder;
  manual_seed(4);
  Net net;
  data::DataLoader train(toy_points(96), {.batch_size = 8, .shuffle = true}), val(toy_points(60, 9), {.batch_size = 8});
  const double right = own_loop(net, train, val, folder.path / "net.safetensors");
  CHECK(right > 0.7);  // a third by chance
  Net read;
  read.load_state_dict(interop::load_safetensors(folder.path / "net.safetensors").tensors);
  CHECK(values_of(read) == values_of(net));
}
