// Checkpoints written by an earlier version of Levin.
#include <levin/core/io.h>
#include <levin/trainer/checkpoint/checkpoint.h>

#include <nlohmann/json.hpp>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

// A checkpoint of version 1 after epoch 0, as it stood on a disk; @ marks what each writing changes.
constexpr const char* kVersion1 = R"({
 "callbacks/ModelCheckpoint/val_loss/dir": "@dir",
 "callbacks/ModelCheckpoint/val_loss/last": "epoch=0-step=6",
 "callbacks/ModelCheckpoint/val_loss/last_step": 6,
 "callbacks/ModelCheckpoint/val_loss/names": ["epoch=0-step=6"],
 "callbacks/ModelCheckpoint/val_loss/scores": {"f64": [0.25]},
 "loader/batch_size": 4, "loader/batches": 6, "loader/epoch": 0, "loader/samples": 23, "loader/seed": 7,
 "loop/batch": 6, "loop/epoch": 0, "loop/epoch_complete": 1, "loop/global_step": 6, "loop/micro": 0,
 "loop/optimizer_steps": 6, "loop/point": 1, "loop/samples": 23, "loop/window_nominal": 0.0,
 "loop/window_weight": 0.0,
 "metrics/flags": [0, 0, 6, 1, 1, 1, 1, 1, 1, 0, 1, 0, 7, 0, 1, 0, 1, 0, 1, 1],
 "metrics/names": ["train_loss", "val_loss"],
 "metrics/numbers": {"f64": [0.5, 11.5, 23.0, 0.0, 0.0, 2.5, 10.0, 0.25]},
 "metrics/stamp": 7,
 "precision_name": "32-true",
 "rng/offset": @offset, "rng/seed": 3
})";

void replace(std::string& text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), by);
}

std::uint32_t crc(const std::string& text) { return io::crc32(std::as_bytes(std::span(text))); }

/// The folder that version 1 would have written in the place of `today`.
void write_version_1(const fs::path& folder, const fs::path& today) {
  const auto values = read_checkpoint(today).values;
  std::string text = kVersion1;
  replace(text, "@dir", folder.parent_path().string());
  replace(text, "@offset", std::to_string(values.get<std::int64_t>("rng/offset")));
  json root = {{"format", "levin-checkpoint"}, {"version", 1}, {"values", json::parse(text)}};
  fs::create_directories(folder);
  for (const char* name : {"model.safetensors", "state.safetensors"}) {
    const auto bytes = io::read_file(today / name);
    io::write_file(folder / name, bytes);
    root["files"][name] = {{"bytes", bytes.size()}, {"crc32", io::crc32(bytes)}};
  }
  root["crc32"] = crc(json({root["files"], root["values"]}).dump());
  io::write_file(folder / "state.json", root.dump(1) + "\n");
}

struct Fitted {
  std::vector<std::vector<float>> weights;
  std::size_t steps = 0;
  std::shared_ptr<ModelCheckpoint> policy;
};

Fitted fit(const fs::path& dir, std::int64_t epochs, const std::string& ckpt = {}) {
  manual_seed(3);
  ToyModule model;
  data::DataLoader train(toy_points(23), {.batch_size = 4, .shuffle = true, .seed = 7});
  data::DataLoader val(toy_points(10, 9), {.batch_size = 4});
  const auto policy = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.dirpath = dir, .monitor = "val_loss"});
  auto config = quiet({.max_epochs = epochs});
  config.callbacks = {policy};
  Trainer(config).fit(model, train, val, ckpt);
  return {values_of(model), model.losses.size(), policy};
}

}  // namespace

TEST_CASE("a checkpoint of version 1 resumes to the same weights") {
  const TempDir a, b;
  fit(a.path, 1);
  write_version_1(b.path / "epoch=0-step=6", a.path / "last");
  const Checkpoint c = read_checkpoint(b.path / "epoch=0-step=6");
  CHECK(c.values.get<std::vector<std::int64_t>>("loop/optimizer_steps") == std::vector<std::int64_t>{6});
  CHECK_FALSE(c.values.has("callbacks/ModelCheckpoint/val_loss/names"));
  CHECK(c.hparams().empty());

  const Fitted whole = fit(a.path, 3, "last");
  const Fitted moved = fit(b.path, 3, (b.path / "epoch=0-step=6").string());
  CHECK(moved.steps == 12);
  CHECK(moved.weights == whole.weights);
  // Its best, 0.25, was worse or better than what came: the list knew of it either way.
  CHECK(moved.policy->best_model_score().value() <= 0.25);
}

TEST_CASE("a version 1 with values missing is refused as not fitting, not read as something else") {
  const TempDir a, b;
  fit(a.path, 1);
  write_version_1(b.path / "old", a.path / "last");
  auto root = json::parse(io::read_text(b.path / "old/state.json"));
  root["values"].erase("loop/optimizer_steps");
  root["crc32"] = crc(json({root["files"], root["values"]}).dump());
  io::write_file(b.path / "old/state.json", root.dump());
  CHECK(contains(message_of<StateError>([&] { read_checkpoint(b.path / "old"); }), "optimizer_steps"));
}
