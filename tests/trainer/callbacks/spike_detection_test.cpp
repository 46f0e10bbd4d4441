// A jump of the loss ends the run and leaves the list of its batches.
#include <levin/core/io.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "trainer/callbacks/scripted.h"

using namespace levin;
using namespace levin::test;

namespace {

/// The batch of the spike, -1 without one; one epoch.
int spike(std::vector<double> losses, SpikeDetectionOptions options, const std::filesystem::path& dir) {
  manual_seed(1);
  const auto n = std::ssize(losses);
  LossScript model(std::move(losses));
  data::DataLoader train(toy_points(n), {.batch_size = 1});
  auto config = quiet({.max_epochs = 1, .default_root_dir = dir});
  config.callbacks = {SpikeDetection(options)};
  try {
    Trainer(config).fit(model, train);
  } catch (const TrainingSpike& e) {
    CHECK(e.epoch() == 0);
    CHECK(contains(e.what(), ".json"));
    return e.batch();
  }
  return -1;
}

}  // namespace

TEST_CASE("callbacks/spike_detection_table") {
  struct Row {
    const char* name;
    std::vector<double> losses;
    SpikeDetectionOptions options;
    int batch;
  };
  const std::vector<Row> rows = {
      {"calm", {1, 1.1, 0.9, 1.2}, {}, -1},
      {"three times the average", {1, 1, 1, 3, 1}, {}, 3},
      {"not quite three times", {1, 1, 1, 2.9, 1}, {}, -1},
      {"better is no spike", {1, 1, 1, -9, 1}, {}, -1},
      {"within the warm-up", {1, 9, 9}, {.warmup = 2}, -1},
      {"after the warm-up", {1, 1, 9}, {.warmup = 2}, 2},
      {"atol alone", {1, 1, 1.6}, {.atol = 0.5, .rtol = {}}, 2},
      {"atol and rtol, one is not met", {1, 1, 3.5}, {.atol = 3.0}, -1},
      {"mode max", {1, 1, -1.5}, {.mode = Mode::max}, 2},
      {"the window forgets", {9, 9, 1, 1, 3}, {.window = 2, .warmup = 1}, 4},
      {"NaN", {1, 1, NAN, 1}, {}, 2},
      {"infinity", {1, 1, INFINITY}, {}, 2},
      {"NaN is passed over where asked", {1, 1, NAN, 1, 9}, {.finite_only = false}, 4},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    const TempDir folder;
    CHECK(spike(row.losses, row.options, folder.path) == row.batch);
    CHECK(std::filesystem::exists(folder.path / "skip_batches.json") == (row.batch >= 0));
  }
  CHECK_THROWS_AS(SpikeDetection({.window = 0}), UsageError);
  CHECK_THROWS_AS(SpikeDetection({.warmup = -1}), UsageError);
}

TEST_CASE("callbacks/spike_detection_file: this batch and the one before, and an earlier list goes on") {
  const TempDir folder;
  const auto file = folder.path / "deep" / "skip.json";
  const auto list = [&] { return nlohmann::json::parse(io::read_text(file)).get<std::vector<int>>(); };
  CHECK(spike({1, 1, 1, 8}, {.exclude_batches_path = file}, folder.path) == 3);
  CHECK(list() == std::vector<int>{2, 3});
  CHECK(spike({1, 8}, {.exclude_batches_path = file}, folder.path) == 1);
  CHECK(list() == std::vector<int>{2, 3, 0, 1});
  io::write_file(file, std::string("{\"a\": 1}"));
  CHECK_THROWS_AS(spike({1, 1}, {.exclude_batches_path = file}, folder.path), IoError);
}
