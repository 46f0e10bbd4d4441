// Which folders are there after which values.
#include <levin/trainer/checkpoint.h>

#include <cmath>
#include <set>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Scripted : ToyModule {
  explicit Scripted(std::vector<double> v) : values(std::move(v)) {}
  std::vector<double> values;
  void validation_step(const Batch&, int) override {
    log("score", values[static_cast<std::size_t>(current_epoch()) % values.size()]);
  }
};

std::set<std::string> names_in(const std::filesystem::path& dir) {
  std::set<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(dir)) out.insert(e.path().filename().string());
  return out;
}

using Names = std::set<std::string>;

struct Result {
  Names names;
  std::string best, last;
  std::optional<double> score;
};

Result run(const std::filesystem::path& dir, const std::vector<double>& values, ModelCheckpointOptions options,
           std::int64_t epochs = 0, const std::string& ckpt = {}) {
  manual_seed(1);
  Scripted model(values);
  data::DataLoader train(toy_points(8), {.batch_size = 4, .seed = 1}), val(toy_points(4), {.batch_size = 4});
  options.dirpath = dir;
  const auto policy = std::make_shared<ModelCheckpoint>(options);
  auto config = quiet({.max_epochs = epochs > 0 ? epochs : static_cast<std::int64_t>(values.size())});
  config.num_sanity_val_steps = 0;
  config.callbacks = {policy};
  Trainer trainer(config);
  trainer.fit(model, train, val, ckpt);
  return {names_in(dir), policy->best_model_path().filename().string(), policy->last_model_path().filename().string(),
          policy->best_model_score()};
}

}  // namespace

TEST_CASE("the best and the last stay, each under its pointer") {
  const TempDir f;
  const Result r = run(f.path, {0.5, 0.8, 0.7, 0.6}, {.monitor = "score", .mode = Mode::max});
  CHECK(r.names == Names{"best", "last", "epoch=1-step=4", "epoch=3-step=8"});
  CHECK(r.best == "epoch=1-step=4");
  CHECK(r.last == "epoch=3-step=8");
  CHECK(r.score == 0.8);
  CHECK(std::filesystem::canonical(f.path / "best").filename() == "epoch=1-step=4");
  CHECK(std::filesystem::canonical(f.path / "last").filename() == "epoch=3-step=8");
  CHECK(read_checkpoint(f.path / "best").model.contains("fc1.weight"));
}

TEST_CASE("k best by the smallest value, ties to the first, NaN last") {
  const TempDir f;
  const Result r = run(f.path, {0.5, 0.3, 0.3, NAN, 0.9, 0.1},
                       {.monitor = "score", .mode = Mode::min, .save_top_k = 2, .save_last = false});
  CHECK(r.names == Names{"best", "epoch=5-step=12", "epoch=1-step=4"});
  CHECK(r.best == "epoch=5-step=12");
  const TempDir g;
  CHECK(run(g.path, {NAN, 2.0, 3.0}, {.monitor = "score", .save_last = false}).best == "epoch=1-step=4");
}

TEST_CASE("all, none, and the newest where nothing is watched") {
  const TempDir a, b, c, d;
  CHECK(run(a.path, {3, 2, 1}, {.monitor = "score", .save_top_k = -1, .save_last = false}).names.size() == 4);
  CHECK(run(b.path, {3, 2, 1}, {.save_top_k = 0, .save_last = false}).names.empty());
  CHECK(run(c.path, {3, 2, 1}, {}).names == Names{"best", "last", "epoch=2-step=6"});
  CHECK(run(d.path, {3, 2, 1}, {.save_top_k = 0}).names == Names{"last", "epoch=2-step=6"});
}

TEST_CASE("every n steps, every n epochs, names with values") {
  const TempDir a, b, c;
  CHECK(run(a.path, {1, 1, 1}, {.save_top_k = -1, .save_last = false, .every_n_train_steps = 3}).names ==
        Names{"best", "epoch=1-step=3", "epoch=2-step=6"});
  CHECK(run(b.path, {1, 1, 1, 1}, {.save_top_k = -1, .save_last = false, .every_n_epochs = 2}).names ==
        Names{"best", "epoch=1-step=4", "epoch=3-step=8"});
  CHECK(run(c.path, {0.25}, {.filename = "e{epoch}_{score}", .monitor = "score", .save_last = false}).best ==
        "eepoch=0_score=0.2500");
}

TEST_CASE("a resumed run remembers the best of the run before") {
  const TempDir f;
  run(f.path, {0.9, 0.5}, {.monitor = "score", .mode = Mode::max});
  const Result r = run(f.path, {0, 0, 0.7, 0.6}, {.monitor = "score", .mode = Mode::max}, 4, "last");
  CHECK(r.best == "epoch=0-step=2");
  CHECK(r.score == 0.9);
  CHECK(r.names == Names{"best", "last", "epoch=0-step=2", "epoch=3-step=8"});
}

TEST_CASE("options that contradict each other, and an unknown monitor") {
  CHECK_THROWS_AS(ModelCheckpoint({.save_top_k = 2}), UsageError);
  CHECK_THROWS_AS(ModelCheckpoint({.save_top_k = -2}), UsageError);
  CHECK_THROWS_AS(ModelCheckpoint({.every_n_epochs = 1, .every_n_train_steps = 1}), UsageError);
  const TempDir f;
  const auto text = message_of<UsageError>([&] { run(f.path, {1}, {.monitor = "skore"}); });
  CHECK(contains(text, "\"skore\" was not logged"));
  CHECK(contains(text, "score"));
}

TEST_CASE("test and predict load the best weights") {
  const TempDir f;
  manual_seed(1);
  struct Model : ToyModule {
    void validation_step(const Batch&, int) override { log("score", current_epoch() == 0 ? 1.0 : 0.0); }
    void on_train_epoch_end() override {
      if (current_epoch() == 0) first = values_of(*this);
    }
    std::vector<std::vector<float>> first;
  } model;
  data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  auto config = quiet({.max_epochs = 3});
  config.callbacks = {ModelCheckpoint({.dirpath = f.path, .monitor = "score", .mode = Mode::max})};
  Trainer trainer(config);
  trainer.fit(model, train, val);
  CHECK(values_of(model) != model.first);
  const auto loader = std::make_shared<data::DataLoader>(toy_points(6), data::DataLoaderOptions{.batch_size = 3});
  const auto result = trainer.test(model, {.test = loader}, "best");
  CHECK(values_of(model) == model.first);
  CHECK(result.count("test_acc") == 1);
}

TEST_CASE("the plan in words") {
  CHECK(ModelCheckpoint({.monitor = "val_acc", .mode = Mode::max}).explain() ==
        "saves after every validation, keeps the 1 with the largest val_acc and the last");
}
