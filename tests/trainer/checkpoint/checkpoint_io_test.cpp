// The files of a checkpoint are exact, complete or absent, and refused if damaged.
#include <levin/core/io.h>
#include <levin/trainer/checkpoint/checkpoint.h>

#include <cmath>
#include <fstream>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

Checkpoint sample() {
  Checkpoint c;
  c.model.set("fc.weight", from_data<float>({1.5f, -0.0f, 3e-39f, INFINITY}, {2, 2}));
  c.tensors.set("optimizer.exp_avg", from_data<double>({0.1}, {1}));
  c.values.set("loop/epoch", std::int64_t{3});
  c.values.set("third", 1.0 / 3.0);
  c.values.set("one", 1.0);
  c.values.set("nan", std::nan(""));
  c.values.set("minus", -INFINITY);
  c.values.set("name", std::string("a \"quoted\" \u00e9 name"));
  c.values.set("whole", std::vector<std::int64_t>{1, -9223372036854775807LL - 1});
  c.values.set("real", std::vector<double>{0.1, INFINITY, 5e-324});
  c.values.set("names", std::vector<std::string>{"x", "nan"});
  c.values.set("nothing", std::vector<double>{});
  return c;
}

void flip(const std::filesystem::path& file, std::size_t at) {
  auto bytes = io::read_file(file);
  bytes.at(at) ^= std::byte{1};
  io::write_file(file, bytes);
}

}  // namespace

TEST_CASE("a checkpoint is read back bit for bit") {
  const TempDir f;
  write_checkpoint(f.path / "a", sample());
  const Checkpoint c = read_checkpoint(f.path / "a");
  CHECK(c.model.at("fc.weight").to_vector<float>() == sample().model.at("fc.weight").to_vector<float>());
  CHECK(c.values.get<std::int64_t>("loop/epoch") == 3);
  CHECK(c.values.get<double>("third") == 1.0 / 3.0);
  CHECK(c.values.get<double>("one") == 1.0);
  CHECK(std::isnan(c.values.get<double>("nan")));
  CHECK(c.values.get<double>("minus") == -INFINITY);
  CHECK(c.values.get<std::string>("name") == "a \"quoted\" \u00e9 name");
  CHECK(c.values.get<std::vector<std::int64_t>>("whole")[1] == std::numeric_limits<std::int64_t>::min());
  CHECK(c.values.get<std::vector<double>>("real") == std::vector<double>{0.1, INFINITY, 5e-324});
  CHECK(c.values.get<std::vector<std::string>>("names") == std::vector<std::string>{"x", "nan"});
  CHECK(c.values.get<std::vector<double>>("nothing").empty());
  CHECK_THROWS_AS(c.values.get<double>("absent"), StateError);
  CHECK_THROWS_AS(c.values.get<double>("name"), StateError);
}

TEST_CASE("a missing, cut or changed file is refused with one sentence that names the folder") {
  const TempDir f;
  for (const char* name : {"model.safetensors", "state.safetensors", "state.json"}) {
    const auto folder = f.path / "c";
    const auto said = [&] { return message_of<IoError>([&] { read_checkpoint(folder); }); };
    write_checkpoint(folder, sample());
    const auto size = std::filesystem::file_size(folder / name);
    for (std::size_t at = 0; at < size; at += 7) {
      flip(folder / name, at);
      INFO(name, " at ", at);
      bool refused = false;
      try {
        read_checkpoint(folder);
      } catch (const Error& e) {
        refused = contains(e.what(), folder.string());
      }
      CHECK(refused);
      flip(folder / name, at);
    }
    std::filesystem::resize_file(folder / name, size - 2);
    CHECK(contains(said(), folder.string()));
    std::filesystem::remove(folder / name);
    CHECK(contains(said(), name));
  }
}

TEST_CASE("a checkpoint of a newer version is refused with that reason") {
  const TempDir f;
  write_checkpoint(f.path / "a", sample());
  auto text = io::read_text(f.path / "a/state.json");
  const auto at = text.find("\"version\": 2");
  REQUIRE(at != std::string::npos);
  text.replace(at, 12, "\"version\": 3");
  io::write_file(f.path / "a/state.json", text);
  CHECK(contains(message_of<StateError>([&] { read_checkpoint(f.path / "a"); }), "has version 3, this program reads"));
}

TEST_CASE("a disk that is full at any moment leaves the previous checkpoint intact") {
  const TempDir f;
  const auto folder = f.path / "c";
  write_checkpoint(folder, sample());
  Checkpoint next = sample();
  next.values.set("loop/epoch", std::int64_t{4});
  int failures = 0;
  for (std::int64_t room = 0;; room += 53) {
    io::fail_writes_after(room);
    std::string said;
    try {
      write_checkpoint(folder, next);
    } catch (const IoError& e) {
      said = e.what();
    }
    io::fail_writes_after(-1);
    if (said.empty()) break;
    ++failures;
    CHECK_MESSAGE(contains(said, folder.string() + " was not saved"), said);
    CHECK(contains(said, "No space left"));
    CHECK(read_checkpoint(folder).values.get<std::int64_t>("loop/epoch") == 3);
    CHECK(std::distance(std::filesystem::directory_iterator(f.path), {}) == 1);
  }
  CHECK(failures > 10);
  CHECK(read_checkpoint(folder).values.get<std::int64_t>("loop/epoch") == 4);
}

TEST_CASE("a disk that fills up during training gives IoError, and the best checkpoint is kept") {
  const TempDir f;
  manual_seed(1);
  ToyModule model;
  data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  struct FillsUp : Callback {
    void on_train_epoch_start(RunContext& run) override {
      if (run.state.epoch == 1) io::fail_writes_after(100);
    }
  };
  const auto policy = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.dirpath = f.path});
  auto config = quiet({.max_epochs = 3});
  config.callbacks = {FillsUp(), policy};
  Trainer trainer(config);
  const auto said = message_of<IoError>([&] { trainer.fit(model, train, val); });
  io::fail_writes_after(-1);
  CHECK_MESSAGE(contains(said, "epoch=1-step=4 was not saved"), said);
  CHECK(std::filesystem::path(policy->best_model_path()).filename() == "epoch=0-step=2");
  CHECK(read_checkpoint(f.path / "last").values.get<std::int64_t>("loop/epoch") == 0);
  CHECK(std::filesystem::canonical(f.path / "best").filename() == "epoch=0-step=2");
}

TEST_CASE("a log that cannot be written does not stop training") {
  const TempDir f;
  std::ofstream(f.path / "file") << "in the way";
  manual_seed(1);
  ToyModule model;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2, .log_every_n_steps = 1});
  config.loggers = {std::make_shared<CSVLogger>(f.path / "file" / "metrics.csv")};
  Trainer(config).fit(model, train);
  CHECK(model.losses.size() == 4);
}

TEST_CASE("reading recovers from a crash") {
  const TempDir f;
  write_checkpoint(f.path / "a", sample());
  std::filesystem::rename(f.path / "a", f.path / "a.old");
  CHECK(read_checkpoint(f.path / "a").values.get<std::int64_t>("loop/epoch") == 3);
}
