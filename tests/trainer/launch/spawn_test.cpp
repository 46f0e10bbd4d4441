// ddp_spawn: this program is executed again for every call of the Trainer.
#include <cstdlib>

#include <fmt/format.h>

#include "support/comparison.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Keeps rank zero's weights at the end of a fit.
struct Keep : Callback {
  std::filesystem::path file;
  explicit Keep(std::filesystem::path f) : file(std::move(f)) {}
  void on_fit_end(RunContext& run) override {
    std::string text;
    for (const auto& list : values_of(run.module))
      for (const float v : list) text += fmt::format("{:a} ", v);
    if (run.strategy->is_global_zero()) io::write_file(file, text);
  }
};

std::string text_of(const nn::Module& module) {
  std::string text;
  for (const auto& list : values_of(module))
    for (const float v : list) text += fmt::format("{:a} ", v);
  return text;
}

/// A program with a fit and a validation.
void program(const std::filesystem::path& dir) {
  manual_seed(3);
  ToyModule model;
  data::DataLoader train(toy_points(48), {.batch_size = 4, .shuffle = true, .seed = 7}),
      val(toy_points(9), {.batch_size = 2});
  auto config = quiet({.max_epochs = 2, .accelerator = "cpu", .devices = 2, .timeout = 60, .strategy = "ddp_spawn"});
  const auto best = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.dirpath = dir / "ckpt"});
  config.callbacks = {Keep(dir / "weights"), best};
  Trainer trainer(config);
  const std::string before = text_of(model);
  trainer.fit(model, train, val);
  // Here is the parent, or a rank of the validation.
  CHECK(text_of(model) != before);
  CHECK(text_of(model) == io::read_text(dir / "weights"));
  CHECK(model.losses.empty());  // it has not trained itself
  CHECK(trainer.global_step() == 12);
  CHECK(trainer.callback_metrics().contains("train_loss"));
  CHECK(std::filesystem::path(best->best_model_path()).filename() == "epoch=1-step=12");
  const auto values = trainer.validate(model, DataModule{.val = borrowed(val)})[0];
  CHECK(values.at("val_loss") == approx(trainer.metrics().find("val_loss").value(), {.relative = 1e-6}));
  CHECK(trainer.is_global_zero());
  trainer.save_checkpoint(dir / "after");
  CHECK(std::filesystem::exists(dir / "after" / "state.safetensors"));
  const auto refused = message_of<UsageError>([&] { trainer.predict(model, DataModule{.predict = borrowed(val)}); });
  CHECK(contains(refused, "Use --strategy ddp"));
}

}  // namespace

TEST_CASE("ddp_spawn/parent_gets_weights") {
  const char* given = std::getenv("LEVIN_TEST_SPAWN");
  if (given) {
    try {
      program(given);
    } catch (const Error& e) {
      if (!contains(e.what(), "this rank has finished its call")) throw;
    }
    return;
  }
  const TempDir dir;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "LEVIN_TEST_SPAWN=" + dir.path.string() + " timeout 120 " + self +
                              " --test-case=ddp_spawn/parent_gets_weights > " + (dir.path / "out").string() + " 2>&1";
  const int status = std::system(command.c_str());
  CHECK_MESSAGE(status == 0, io::read_text(dir.path / "out"));
}

TEST_CASE("ddp_spawn: a rank that fails is an error of the parent") {
  if (std::getenv("LEVIN_TEST_SPAWN_FAULT")) {
    ToyModule model;
    data::DataLoader train(toy_points(48), {.batch_size = 4});
    auto config = quiet({.accelerator = "cpu", .devices = 2, .timeout = 60, .strategy = "ddp_spawn"});
    config.callbacks = {LambdaCallback({.on_train_start = [](RunContext& run) {
      if (run.strategy->rank() == 1) throw ValueError("a bad start");
    }})};
    Trainer trainer(config);
    trainer.fit(model, train);
    return;
  }
  const TempDir dir;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string out = (dir.path / "out").string();
  const int status =
      std::system(("LEVIN_TEST_SPAWN_FAULT=1 timeout 120 " + self +
                   " --test-case='ddp_spawn: a rank that fails is an error of the parent' > " + out + " 2>&1")
                      .c_str());
  CHECK(status != 0);
  const std::string text = io::read_text(out);
  CHECK(text.find("a bad start") < text.find("[ddp_spawn] rank 1 ended with status"));
}
