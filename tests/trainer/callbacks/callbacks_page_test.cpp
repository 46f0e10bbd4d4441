// docs/callbacks.md shows the lines between the markers; the test compares and runs them.
#include "support/comparison.h"
#include "support/paths.h"

#include <fstream>
#include <sstream>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

using Path = std::filesystem::path;

/// Fits the toy for a few epochs by a configuration of the page.
template <class M = ToyModule>
void fit(TrainerConfig config, std::int64_t epochs = 4) {
  manual_seed(1);
  M model;
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  config = quiet(config);
  config.max_epochs = epochs;
  Trainer trainer(config);
  trainer.fit(model, train, val);
  CHECK(trainer.current_epoch() >= 1);
}

// clang-format off
void stopping() {
  TrainerConfig config;
// page begins
  const auto early = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "val_loss", .patience = 5});
  config.callbacks = {early, Timer("00:08:00:00")};   // or after eight hours, including those before a resume
// page ends
  fit(config);
  CHECK(early->reason() == EarlyStopping::Reason::not_stopped);
}

void spike(const std::string& dir) {
  TrainerConfig config;
// page begins
  config.callbacks = {SpikeDetection({.rtol = 4.0, .exclude_batches_path = dir})};
// page ends
  fit(config);
}

void ema() {
  TrainerConfig config;
// page begins
  const auto ema = std::make_shared<EMA>(EMAWeightAveragingOptions{.decay = 0.99, .update_starting_at_step = 10});
  config.callbacks = {ema};
// page ends
  fit(config);
  CHECK(ema->average().size() == 4);
}

void swa() {
  TrainerConfig config;
// page begins
  config.callbacks = {StochasticWeightAveraging({.swa_lrs = {0.05}, .swa_epoch_start = 0.5, .annealing_epochs = 2})};
// page ends
  fit(config);
}

void finetune(const TrainerConfig& config);

void finetuning() {
  TrainerConfig config;
// page begins
  config.callbacks = {BackboneFinetuning({.backbone = "fc1", .unfreeze_backbone_at_epoch = 1, .train_bn = false})};
// page ends
  finetune(config);
}

struct Finetuned : ToyModule {
// page begins
  Optimizers configure_optimizers() override {
    return optim::AdamW(BaseFinetuning::trainable_parameters(*this, *this), {.lr = 0.02});
  }
// page ends
};

void finetune(const TrainerConfig& config) { fit<Finetuned>(config); }

void accumulation() {
  TrainerConfig config;
// page begins
  config.callbacks = {GradientAccumulationScheduler({{0, 1}, {2, 4}})};   // four batches per step from epoch 2 on
// page ends
  fit(config);
}

void looking() {
  TrainerConfig config;
// page begins
  config.callbacks = {LearningRateMonitor({.log_momentum = true}), GradientNormMonitor(), DeviceStatsMonitor(),
                      ThroughputMonitor({.length_fn = [](const Batch& b) { return b[0].numel(); }, .window = 20})};
// page ends
  fit(config);
}

void zeros() {
  TrainerConfig config;
// page begins
  const auto pruning = std::make_shared<ModelPruning>(ModelPruningOptions{
      .parameter_names = {"weight"}, .amount = 0.2, .make_pruning_permanent = false});
  config.callbacks = {pruning};
// page ends
  fit(config, 2);
  CHECK(pruning->sparsity() == approx(0.36, {.relative = 0.02}));
}

void predictions(const std::string& dir) {
  TrainerConfig config;
// page begins
  config.callbacks = {PredictionWriter(dir + "/predictions", WriteInterval::epoch)};
// page ends
  manual_seed(1);
  ToyModule model;
  const auto loader = std::make_shared<data::DataLoader>(toy_points(10), data::DataLoaderOptions{.batch_size = 4});
  Trainer(quiet(config)).predict(model, DataModule{.predict = loader});
  CHECK(std::filesystem::exists(dir + "/predictions/predictions_rank0.npy"));
}

void own() {
  TrainerConfig config;
// page begins
  config.callbacks = {LambdaCallback({.on_train_epoch_end = [&](RunContext& run) {
    run.log("epochs_done", static_cast<double>(run.state.epoch + 1));
    if (run.metrics.find("train_loss").value_or(0) > 1e3) run.stop.request("this leads nowhere");
  }})};
// page ends
  fit(config);
}

// clang-format on

std::string read(const Path& path) {
  std::ifstream in(test::source_dir() / path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Returns the texts between each pair of these markers.
std::vector<std::string> all_between(const std::string& text, const std::string& begin, const std::string& end) {
  std::vector<std::string> out;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at = text.find('\n', at) + 1;
    const std::size_t to = text.find(end, at);
    out.push_back(text.substr(at, to - at));
    at = to;
  }
  return out;
}

}  // namespace

TEST_CASE("the page on callbacks shows lines that compile and run") {
  const auto shown = all_between(read("docs/callbacks.md"), "```cpp\n", "```");
  const auto compiled = all_between(read("tests/trainer/callbacks/callbacks_page_test.cpp"),
                                    "// page "
                                    "begins\n",
                                    "// page "
                                    "ends\n");
  CHECK(shown.size() == 11);
  REQUIRE(shown.size() == compiled.size());
  for (std::size_t i = 0; i < shown.size(); ++i) CHECK(shown[i] == compiled[i]);
  const TempDir folder;
  stopping();
  spike(folder.path);
  ema();
  swa();
  finetuning();
  accumulation();
  looking();
  zeros();
  predictions(folder.path);
  own();
}

TEST_CASE("the page on callbacks names every one with its options") {
  const std::string page = read("docs/callbacks.md");
  for (const char* header : {"callbacks/early_stopping.h", "callbacks/timer.h", "callbacks/finetuning.h",
                             "callbacks/monitors.h", "callbacks/model_pruning.h", "callbacks/spike_detection.h",
                             "callbacks/weight_averaging.h", "callbacks/stochastic_weight_averaging.h"}) {
    std::istringstream text(read(Path("trainer/include/levin/trainer") / header));
    bool options = false;
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("struct ") && line.find("Options {") != std::string::npos) options = true;
      if (line.starts_with("}")) options = false;
      const std::size_t end = std::min(line.find(" = "), line.find("{}"));
      if (!options || !line.starts_with("  ") || end == std::string::npos) continue;
      const std::size_t space = line.rfind(' ', end - 1);
      const std::string name = line.substr(space + 1, end - space - 1);
      if (name == "clock") continue;  // for tests
      CHECK_MESSAGE(page.find("`" + name) != std::string::npos, header, ": ", name);
    }
  }
}
