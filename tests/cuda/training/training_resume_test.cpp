// A run with loss scaling that is interrupted and resumed on a CUDA device ends with the bits of an uninterrupted run.

#include "cuda/training/training.h"

#include <levin/trainer/checkpoint/checkpoint.h>

#include <filesystem>

using namespace levin;
using namespace levin::test;

namespace {

struct Outcome {
  std::vector<std::vector<float>> weights;
  std::vector<float> master, moment;
  std::int64_t optimizer_steps = 0;
  double scale = 0;
};

/// Runs two epochs of 3 batches, the second of which overflows, up to `steps`, from the start or from a checkpoint.
Outcome run(const std::string& precision, const std::string& accelerator, std::int64_t steps,
            const std::filesystem::path& folder, bool resume) {
  manual_seed(resume ? 99 : 3);
  PointNet model;
  model.overflow_at = {1};
  data::DataLoader train(toy_points(22), {.batch_size = 8, .shuffle = true, .seed = 7});
  auto config =
      quiet({.max_steps = steps, .gradient_clip_val = 1.0, .precision = precision, .accelerator = accelerator});
  config.callbacks = {ModelCheckpoint({.dirpath = folder})};
  if (resume) model.steps = 2;
  Trainer trainer(config);
  trainer.fit(model, DataModule{.train = std::shared_ptr<data::DataLoader>(std::shared_ptr<void>(), &train)},
              resume ? (folder / "last").string() : "");
  CHECK(trainer.global_step() == steps);
  const Checkpoint last = read_checkpoint(folder / "last");
  return {values_of(model), last.model.at("fc1.weight").to_vector<float>(),
          last.tensors.at("optimizer.state.fc1.weight.exp_avg").to_vector<float>(),
          trainer.state().optimizer_steps.at(0), last.values.part("precision").get<double>("scale")};
}

}  // namespace

TEST_CASE("resume on cuda and on the cpu is bit-equal with loss scaling and with master weights") {
  for (const std::string precision : {"16-mixed", "16-o2"})
    for (const std::string accelerator : {"cpu", "cuda"}) {
      INFO(precision, " on ", accelerator);
      const TempDir a, b;
      const Outcome whole = run(precision, accelerator, 6, a.path, false);
      run(precision, accelerator, 2, b.path, false);
      const Outcome resumed = run(precision, accelerator, 6, b.path, true);
      CHECK(resumed.weights == whole.weights);
      CHECK(resumed.master == whole.master);
      CHECK(resumed.moment == whole.moment);
      CHECK(whole.optimizer_steps == 5);
      CHECK(resumed.optimizer_steps == 5);
      CHECK(whole.scale == 32768.0);
      CHECK(resumed.scale == 32768.0);
    }
}
