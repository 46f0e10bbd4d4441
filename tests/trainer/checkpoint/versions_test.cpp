// Checkpoints of all released versions, kept in versions/<version>, load and continue. With LEVIN_WRITE_CHECKPOINT set,
// the test writes that of the present version first: do so once, when a version is tagged.
#include <levin/core/config.h>
#include <levin/trainer/checkpoint/checkpoint.h>

#include <algorithm>
#include <cstdlib>

#include "support/comparison.h"
#include "support/paths.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

namespace fs = std::filesystem;

/// The network and training of all stored checkpoints. Whatever changes elsewhere, this stays.
struct Stored : LevinModule {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 8);
  nn::BatchNorm1d& norm = add<nn::BatchNorm1d>("norm", 8);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 8, 3);
  Tensor forward(const Tensor& x) override { return fc2(relu(norm(fc1(x)))); }
  StepOutput training_step(const Batch& b, int) override {
    const Tensor loss = cross_entropy((*this)(b[0]), b[1]);
    log("train_loss", loss);
    return loss;
  }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::AdamW(parameters(), {.lr = 0.02})).schedule([](auto& opt) {
      return optim::StepLR(opt, {.step_size = 3, .gamma = 0.7});
    });
  }
};

/// Trains until `epochs` epochs are done, from a checkpoint if one is given, and returns the parameters, but not fc1's
/// bias: its gradient before the normalization is 0 but for rounding, which AdamW turns into steps of full size.
std::vector<std::vector<float>> train(int epochs, const fs::path& from, const fs::path& save_to = {}) {
  manual_seed(from.empty() ? 11 : 12);  // another network and order, which the checkpoint has to replace
  Stored model;
  data::DataLoader loader(toy_points(48), {.batch_size = 8, .shuffle = true});
  Trainer trainer(quiet({.max_epochs = epochs}));
  trainer.fit(model, loader, {}, from.string());
  CHECK(trainer.global_step() == 6 * epochs);
  if (!save_to.empty()) trainer.save_checkpoint(save_to);
  std::vector<std::vector<float>> out;
  for (const auto& p : model.parameters())
    if (p.name != "fc1.bias") out.push_back(p.detach().to_vector<float>());
  return out;
}

}  // namespace

TEST_CASE("a checkpoint of every released version loads and continues") {
  const fs::path versions = source_dir() / "tests/trainer/checkpoint/versions";
  if (std::getenv("LEVIN_WRITE_CHECKPOINT")) train(2, {}, versions / LEVIN_VERSION);
  REQUIRE_MESSAGE(fs::exists(versions / LEVIN_VERSION), "write this version's checkpoint: see the comment above");

  const auto whole = train(4, {});
  int count = 0;
  for (const auto& entry : fs::directory_iterator(versions)) {
    CAPTURE(entry.path().filename().string());
    ++count;
    const auto resumed = train(4, entry.path());
    REQUIRE(resumed.size() == whole.size());
    REQUIRE(whole.size() == 5);
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(largest_difference(resumed[i], whole[i]) <= 1e-4);
  }
  CHECK(count >= 1);
}
