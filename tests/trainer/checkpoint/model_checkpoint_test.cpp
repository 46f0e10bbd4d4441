// The checkpoint folders that exist after given values.
#include <levin/trainer/checkpoint/checkpoint.h>

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
  const auto name = [](const std::filesystem::path& checkpoint) { return checkpoint.filename().string(); };
  return {names_in(dir), name(policy->best_model_path()), name(policy->last_model_path()), policy->best_model_score()};
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

TEST_CASE("all, none, and the newest without a monitor") {
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

TEST_CASE("names from templates: formats, names left out, metrics that are missing or have a slash") {
  const auto name = [](const std::string& filename, bool insert = true) {
    const TempDir f;
    return run(f.path, {0.325}, {.filename = filename, .save_last = false, .auto_insert_metric_name = insert}).best;
  };
  CHECK(name("{epoch:02d}-{score:.2f}") == "epoch=00-score=0.33");
  CHECK(name("{epoch:02d}-{score:.2f}", false) == "00-0.33");
  CHECK(name("net_{step:.1f}_x") == "net_step=2.0_x");
  CHECK(name("{other:.1f}") == "other=0.0");
  CHECK(name("{a/score}") == "a_score=0.0000");
  CHECK(name("") == "epoch=0-step=2");
  for (const char* wrong : {"{epoch", "epoch}", "{}", "{score:d}", "{score:{}}", "a/{epoch}", "best", "last"}) {
    INFO(wrong);
    CHECK(
        contains(message_of<UsageError>([&] { ModelCheckpoint({.filename = wrong}); }), "[ModelCheckpoint] filename"));
  }
}

TEST_CASE("a name in use gets a version, and a freed name is reused") {
  const TempDir a, b, c;
  const ModelCheckpointOptions fixed{.filename = "net", .monitor = "score", .save_top_k = 2, .save_last = false};
  CHECK(run(a.path, {4, 3, 2, 1}, fixed).names == Names{"best", "net", "net-v1"});
  CHECK(run(a.path, {4}, fixed).names == Names{"best", "net", "net-v1", "net-v2"});  // nothing of another run is lost
  CHECK(run(b.path, {2, 1}, {.filename = "net"}).names == Names{"best", "last", "net"});
  std::filesystem::create_directory(c.path / "net");
  CHECK(run(c.path, {2}, {.filename = "net", .enable_version_counter = false}).best == "net");
  CHECK(read_checkpoint(c.path / "net").values.get<std::int64_t>("loop/epoch") == 0);
}

TEST_CASE("no step is saved twice, even if several triggers coincide") {
  struct Counts : ModelCheckpoint {
    using ModelCheckpoint::ModelCheckpoint;
    std::vector<std::string> saved;
    std::vector<CheckpointAction> decide(RunContext& run, SavePoint point) override {
      auto actions = ModelCheckpoint::decide(run, point);
      for (const auto& a : actions)
        if (a.kind == CheckpointAction::Kind::save) saved.push_back(std::filesystem::path(a.path).filename().string());
      return actions;
    }
  };
  const TempDir f;
  Scripted model({3, 1, 2});
  data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  const auto policy = std::make_shared<Counts>(CheckpointPlan()
                                                   .every({.epochs = 2})
                                                   .best(1, "score")
                                                   .best(1, "score", Mode::min, {.on_train_epoch_end = false})
                                                   .last({.steps = 2}),
                                               ModelCheckpointOptions{.dirpath = f.path});
  auto config = quiet({.max_epochs = 3});
  config.callbacks = {policy};
  Trainer(config).fit(model, train, val);
  CHECK(policy->saved == std::vector<std::string>{"epoch=0-step=2", "epoch=1-step=4", "epoch=2-step=6"});
  CHECK(names_in(f.path) == Names{"best", "last", "epoch=1-step=4", "epoch=2-step=6"});
}

TEST_CASE("the moments: validations inside epochs, every second epoch, time, a monitor that comes later") {
  const auto fit = [](const std::filesystem::path& dir, ModelCheckpointOptions o, TrainerConfig c, double value = 1) {
    Scripted model({value});
    data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
    o.dirpath = dir;
    o.save_last = false;
    o.save_top_k = -1;
    auto config = quiet(std::move(c));
    config.num_sanity_val_steps = 0;
    config.callbacks = {ModelCheckpoint(o)};
    Trainer(config).fit(model, train, val);
    auto names = names_in(dir);
    names.erase("best");
    return names;
  };
  using namespace std::chrono_literals;
  const TempDir f;
  int n = 0;
  const auto dir = [&] { return f.path / std::to_string(n++); };
  CHECK(fit(dir(), {}, {.max_epochs = 2, .val_check_interval = 2}) ==
        Names{"epoch=0-step=2", "epoch=0-step=4", "epoch=1-step=6", "epoch=1-step=8"});
  CHECK(fit(dir(), {}, {.max_epochs = 3, .check_val_every_n_epoch = 2}) == Names{"epoch=1-step=8"});
  CHECK(fit(dir(), {.save_on_train_epoch_end = true}, {.max_epochs = 2, .val_check_interval = 2}) ==
        Names{"epoch=0-step=4", "epoch=1-step=8"});
  CHECK(fit(dir(), {.save_on_train_epoch_end = false}, {.max_epochs = 1}) == Names{"epoch=0-step=4"});
  CHECK(fit(dir(), {.train_time_interval = 1ns}, {.max_epochs = 1}).size() == 4);
  CHECK(std::filesystem::create_directory(f.path / std::to_string(n)));
  CHECK(fit(dir(), {.train_time_interval = 24h}, {.max_epochs = 1}).empty());
  // Step 1 has no score yet: that save comes after the validation of step 2; from then on every step has one.
  CHECK(fit(dir(), {.monitor = "score", .every_n_train_steps = 1}, {.max_epochs = 1, .val_check_interval = 2}) ==
        Names{"epoch=0-step=2", "epoch=0-step=3", "epoch=0-step=4"});
  // A save of every epoch waits for a validation that comes every second one.
  CHECK(fit(dir(), {.monitor = "score", .save_on_train_epoch_end = true},
            {.max_epochs = 3, .check_val_every_n_epoch = 2}) == Names{"epoch=1-step=8", "epoch=2-step=12"});
}

TEST_CASE("a resumed run keeps the best of the previous run") {
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
  const auto result = trainer.test(model, loader, "best")[0];
  CHECK(values_of(model) == model.first);
  CHECK(result.count("test_acc") == 1);
}

TEST_CASE("weights only: loads for testing, and the error says why training cannot resume") {
  const TempDir f;
  const Result r = run(f.path, {1.0}, {.save_weights_only = true});
  const Checkpoint c = read_checkpoint(f.path / r.best);
  CHECK(c.weights_only());
  CHECK(c.tensors.empty());
  CHECK(c.model.contains("fc1.weight"));
  const auto said = message_of<StateError>([&] { run(f.path, {1, 1}, {}, 2, "best"); });
  CHECK_MESSAGE(contains(said, "has weights only, no state of an optimizer"), said);
}

TEST_CASE("properties of the best: scores, the k-th, another folder") {
  const TempDir f, g;
  Scripted model({0.5, 0.2, 0.7, 0.4});
  const auto fit = [&](const std::filesystem::path& dir, std::int64_t epochs, const std::string& ckpt) {
    data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
    const auto policy =
        std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.dirpath = dir, .monitor = "score", .save_top_k = 2});
    CHECK_FALSE(policy->best_model_score());
    auto config = quiet({.max_epochs = epochs});
    config.callbacks = {policy};
    Trainer(config).fit(model, train, val, ckpt);
    return policy;
  };
  const auto policy = fit(f.path, 4, "");
  CHECK(policy->best_model_path() == f.path / "epoch=1-step=4");
  CHECK(policy->best_model_score() == 0.2);
  CHECK(policy->current_score() == 0.4);
  CHECK(policy->kth_value() == 0.4);
  CHECK(policy->kth_best_model_path() == f.path / "epoch=3-step=8");
  CHECK(policy->best_k_models().size() == 2);
  const auto moved = fit(g.path, 4, (f.path / "last").string());  // nothing is left to train
  CHECK(moved->best_model_path() == f.path / "epoch=1-step=4");
  CHECK_FALSE(moved->best_model_score());
  CHECK(moved->last_model_path().empty());
  CHECK(names_in(f.path).size() == 4);
}

namespace {

struct Throws : Callback {
  std::int64_t step = 3;
  void on_train_batch_start(RunContext& run, const Batch&, int) override {
    if (run.state.global_step == step) throw ValueError("[test] stop here.");
  }
};

std::vector<std::vector<float>> fit_with(const CallbackPtr& policy, bool throws, const std::string& ckpt = {}) {
  manual_seed(4);
  ToyModule model;
  data::DataLoader train(toy_points(23), {.batch_size = 4, .shuffle = true, .seed = 2}),
      val(toy_points(4), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {policy};
  if (throws) config.callbacks.push_back(Throws());
  Trainer trainer(config);
  if (throws)
    CHECK_THROWS_AS(trainer.fit(model, train, val, ckpt), ValueError);
  else
    trainer.fit(model, train, val, ckpt);
  return values_of(model);
}

}  // namespace

TEST_CASE("OnExceptionCheckpoint: saved by an exception, found by the next fit, removed at its end") {
  const TempDir f, other;
  const auto whole = fit_with(OnExceptionCheckpoint(other.path), false);
  CHECK(names_in(other.path).empty());
  fit_with(OnExceptionCheckpoint(f.path), true);
  CHECK(names_in(f.path) == Names{"on_exception"});
  CHECK(read_checkpoint(f.path / "on_exception").values.get<std::int64_t>("loop/global_step") == 3);
  CHECK(fit_with(OnExceptionCheckpoint(f.path), false) == whole);
  CHECK(names_in(f.path).empty());
  CHECK_THROWS_AS(OnExceptionCheckpoint(f.path, "a/b"), UsageError);
  CHECK_THROWS_AS(OnExceptionCheckpoint(f.path, ""), UsageError);
}

TEST_CASE("save_on_exception: the run resumes from `last` with the same bits") {
  const TempDir f, other;
  const auto whole = fit_with(ModelCheckpoint({.dirpath = other.path}), false);
  fit_with(ModelCheckpoint({.dirpath = f.path, .save_top_k = 0, .save_on_exception = true}), true);
  CHECK(names_in(f.path) == Names{"last", "exception-epoch=0-step=3"});
  CHECK(fit_with(ModelCheckpoint({.dirpath = f.path, .save_last = false}), false, "last") == whole);
  CHECK(names_in(f.path) == Names{"best", "epoch=0-step=6"});  // the checkpoint of the interruption is removed
}

TEST_CASE("the explanation of the checkpoint plan") {
  CHECK(ModelCheckpoint({.monitor = "val_acc", .mode = Mode::max, .save_on_train_epoch_end = true}).explain() ==
        "Saves after every epoch if val_acc is the largest so far, and keeps that one, which `best` names.\nSaves "
        "after every epoch and keeps the newest of all, which `last` names: training resumes from there.\nSaves when a "
        "signal ends the run; `last` names it.\nA checkpoint that none of these needs any more is removed once the new "
        "one is safe on disk.\nEach is a folder {epoch}-{step} in checkpoints, below default_root_dir.\n");
  const std::string plan =
      ModelCheckpoint(CheckpointPlan().every({.steps = 500}).best(3, "val_loss").last().on_exception()).explain();
  for (const char* part : {"Saves every 500 steps and keeps them all.\n",
                           "if val_loss is among the 3 smallest so far, and keeps those; `best` names the one",
                           "after every validation instead, unless there is one per epoch",
                           "Saves when an exception ends the run"})
    CHECK_MESSAGE(contains(plan, part), plan);
  CHECK(contains(CheckpointPlan().explain(), "Saves nothing during training."));
  CHECK_THROWS_AS(ModelCheckpoint(CheckpointPlan().last(), {.save_top_k = 2}), UsageError);
  CHECK_THROWS_AS(CheckpointPlan().every({.steps = 2, .epochs = 1}), UsageError);
  CHECK_THROWS_AS(CheckpointPlan().best(-2, "x"), UsageError);
}
