// The length of a fit, the times of validation, and the loaders used.
#include "trainer/toy.h"

#include <levin/core/warning.h>

using namespace levin;
using namespace levin::test;

namespace {

/// "t" a training step, "v" a validation batch ("w" of the second loader), "|" an epoch's end, "!" a last batch.
struct Tape : ToyModule {
  std::string tape;
  std::vector<std::int64_t> sums;  // of the targets of each training batch: which samples, in which order
  StepOutput training_step(const Batch& b, int i) override {
    tape += is_last_batch() ? "t!" : "t";
    sums.push_back(b[1].sum().item<std::int64_t>());
    return ToyModule::training_step(b, i);
  }
  void validation_step(const Batch& b, int i) override {
    tape += b.dataloader_idx == 0 ? 'v' : 'w';
    log("val_loss", full({}, 1.0 + b.dataloader_idx + i));
  }
  void on_train_epoch_end() override { tape += '|'; }
};

/// A stream of points of unknown length, as from a file.
struct Stream : data::IterableDataset {
  explicit Stream(std::int64_t n) : points(toy_points(n)), size(n) {}
  data::TensorDataset points;
  std::int64_t size;
  std::unique_ptr<data::SampleStream> open(std::int64_t, Generator) const override {
    struct Reader final : data::SampleStream {
      std::optional<Sample> next() override {
        if (at >= owner->size) return std::nullopt;
        Generator rng(0);
        return owner->points.get(at++, rng);
      }
      const Stream* owner = nullptr;
      std::int64_t at = 0;
    };
    auto reader = std::make_unique<Reader>();
    reader->owner = this;
    return reader;
  }
};

LoaderPtr points(std::int64_t n, data::DataLoaderOptions options = {.batch_size = 4}) {
  return std::make_shared<data::DataLoader>(toy_points(n), options);
}
LoaderPtr stream(std::int64_t n, int workers = 0) {
  return std::make_shared<data::DataLoader>(Stream(n),
                                            data::DataLoaderOptions{.batch_size = 4, .num_workers = workers});
}

std::string tape_of(TrainerConfig config, const DataModule& data) {
  manual_seed(1);
  Tape model;
  config = quiet(std::move(config));
  config.num_sanity_val_steps = 0;
  Trainer(config).fit(model, data);
  return model.tape;
}

}  // namespace

TEST_CASE("loops/limits") {
  struct Row {
    TrainerConfig config;
    const char* tape;
  };
  const Row rows[] = {
      {{.max_epochs = 2}, "ttt!|ttt!|"},
      {{.max_epochs = 0}, ""},
      {{.max_epochs = -1, .max_steps = 4}, "ttt!|t|"},
      {{.max_steps = 4}, "ttt!|t|"},
      {{.max_epochs = 1, .max_steps = 4}, "ttt!|"},
      {{.max_epochs = 3, .max_steps = 2}, "tt|"},
      {{.max_epochs = 1, .min_steps = 4}, "ttt!|"},  // a minimum does not extend the run
      {{.max_epochs = 2, .limit_train_batches = 2}, "tt!|tt!|"},
      {{.max_epochs = 2, .max_time = "00:00:00:00"}, ""},
      {{.max_epochs = 1, .max_time = std::chrono::hours(1)}, "ttt!|"},
  };
  for (const Row& row : rows) {
    INFO(row.tape);
    CHECK(tape_of(row.config, {.train = points(12)}) == row.tape);
  }
}

TEST_CASE("an early stop waits for min_epochs and min_steps") {
  struct Stopper : Callback {
    void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) override {
      run.stop.request("enough");
    }
  };
  const auto run = [](TrainerConfig config) {
    config.callbacks = {Stopper()};
    return tape_of(config, {.train = points(12)});
  };
  CHECK(run({.max_epochs = 5}) == "t|");
  CHECK(run({.max_epochs = 5, .min_epochs = 2}) == "ttt!|ttt!|");
  CHECK(run({.max_epochs = 5, .min_steps = 4}) == "ttt!|t|");
  CHECK(run({.max_epochs = 1, .min_epochs = 2}) == "ttt!|");
}

TEST_CASE("loops/global_step_with_accumulation") {
  Tape model;
  Trainer trainer(quiet({.max_epochs = 2, .accumulate_grad_batches = 2}));
  trainer.fit(model, {.train = points(20)});
  CHECK(trainer.global_step() == 6);  // three windows of five batches
  CHECK(trainer.state().total_batches == 10);
  CHECK(trainer.state().optimizer_steps == std::vector<std::int64_t>{6});
}

TEST_CASE("loops/global_step_two_optimizers") {
  struct Two : ToyModule {
    Two() { automatic_optimization = false; }
    StepOutput training_step(const Batch& b, int index) override {
      auto [a, c] = optimizers<2>();
      manual_backward(cross_entropy((*this)(b[0]), b[1]));
      a.step();
      if (index % 2 == 0) c.step();
      a.zero_grad();
      c.zero_grad();
      return {};
    }
    Optimizers configure_optimizers() override {
      return Optimizers(optim::SGD(fc1.parameters(), {.lr = 0.1})).add(optim::SGD(fc2.parameters(), {.lr = 0.1}));
    }
  } model;
  Trainer trainer(quiet({.max_steps = 7}));
  trainer.fit(model, {.train = points(20)});
  CHECK(trainer.global_step() == 7);
  CHECK(trainer.state().optimizer_steps == std::vector<std::int64_t>{7, 4});
}

TEST_CASE("loops/val_schedule") {
  const DataModule four{.train = points(16), .val = points(4)};
  const DataModule unsized{.train = stream(16), .val = points(4)};
  const auto refusal = [&](TrainerConfig config, const DataModule& data) {
    return message_of<UsageError>([&] { tape_of(std::move(config), data); });
  };
  CHECK(tape_of({.max_epochs = 2}, four) == "tttt!v|tttt!v|");
  CHECK(tape_of({.max_epochs = 4, .check_val_every_n_epoch = 2}, four) == "tttt!|tttt!v|tttt!|tttt!v|");
  CHECK(tape_of({.max_epochs = 1, .val_check_interval = 0.25}, four) == "tvtvtvt!v|");
  CHECK(tape_of({.max_epochs = 1, .val_check_interval = 0.1}, four) == "tvtvtvt!v|");  // at least every batch
  CHECK(tape_of({.max_epochs = 1, .val_check_interval = 0.5}, four) == "ttvtt!v|");
  CHECK(tape_of({.max_epochs = 2, .val_check_interval = 3}, four) == "tttvt!|tttvt!|");
  CHECK(tape_of({.max_epochs = 2, .val_check_interval = 3, .check_val_every_n_epoch = std::nullopt}, four) ==
        "tttvt!|ttvtt!|");
  CHECK(tape_of({.max_epochs = 3, .val_check_interval = 6, .check_val_every_n_epoch = std::nullopt}, four) ==
        "tttt!|ttvtt!|tttt!v|");
  CHECK(tape_of({.max_epochs = 1, .val_check_interval = std::chrono::seconds(0)}, four) == "tvtvtvt!v|");
  CHECK(tape_of({.max_epochs = 1, .val_check_interval = "99:00:00:00"}, four) == "tttt!|");
  CHECK(contains(refusal({.max_epochs = 1, .val_check_interval = 5}, four), "--val-check-interval 5: an epoch has 4"));

  CHECK(tape_of({.max_epochs = 2}, unsized) == "tttt!v|tttt!v|");
  CHECK(tape_of({.max_epochs = 1, .val_check_interval = 3}, unsized) == "tttvt!|");
  CHECK(tape_of({.max_epochs = 1, .val_check_interval = std::chrono::seconds(0)}, unsized) == "tvtvtvt!v|");
  CHECK(contains(refusal({.max_epochs = 1, .val_check_interval = 0.5}, unsized), "does not know how many batches"));
}

TEST_CASE("loops/is_last_batch_iterable") {
  for (const int workers : {0, 2}) {
    CHECK(tape_of({.max_epochs = 2}, {.train = stream(14, workers)}) == "tttt!|tttt!|");
    CHECK(tape_of({.max_epochs = 2, .limit_train_batches = 3}, {.train = stream(14, workers)}) == "ttt!|ttt!|");
    CHECK(tape_of({.max_epochs = 1, .limit_train_batches = 30}, {.train = stream(14, workers)}) == "tttt!|");
  }
  CHECK(contains(message_of<UsageError>([] { tape_of({.limit_train_batches = 0.5}, {.train = stream(14)}); }),
                 "--limit-train-batches 0.5: the loader does not know"));
  // The window that is open at the end of an epoch is closed there.
  Tape model;
  Trainer trainer(quiet({.max_epochs = 2, .accumulate_grad_batches = 3}));
  trainer.fit(model, {.train = stream(16)});
  CHECK(trainer.global_step() == 4);
  CHECK(trainer.num_training_batches() == -1);  // a stream does not say
}

TEST_CASE("a run over a stream resumes from any of its checkpoints") {
  const TempDir folder;
  const auto run = [&](std::int64_t max_steps, const std::string& ckpt) {
    manual_seed(1);
    Tape model;
    auto config = quiet({.max_epochs = 2, .max_steps = max_steps});
    config.callbacks = {ModelCheckpoint({.dirpath = folder.path, .save_last = true, .every_n_train_steps = 1})};
    Trainer(config).fit(model, {.train = stream(18)}, ckpt);
    return values_of(model);
  };
  const auto whole = run(-1, "");
  for (const std::int64_t n : {1, 4, 5, 6, 9}) {
    INFO("stopped after step ", n);
    std::filesystem::remove_all(folder.path);
    run(n, "");
    CHECK(run(-1, std::filesystem::canonical(folder.path / "last").string()) == whole);
  }
}

TEST_CASE("several validation loaders run in turn, and their values have separate names") {
  manual_seed(1);
  Tape model;
  const DataModule data{.train = points(8), .val = {points(12), points(8)}};
  Trainer trainer(quiet({.max_epochs = 1, .limit_val_batches = 2}));
  trainer.fit(model, data);
  CHECK(model.tape == "vvwwtt!vvww|");
  CHECK(trainer.metrics().find("val_loss/dataloader_idx_0") == 1.5);
  CHECK(trainer.metrics().find("val_loss/dataloader_idx_1") == 2.5);
  CHECK_FALSE(trainer.metrics().find("val_loss"));
  const auto results = trainer.validate(model, data);
  CHECK(results == Trainer::Results{{{"val_loss/dataloader_idx_0", 1.5}}, {{"val_loss/dataloader_idx_1", 2.5}}});
  struct Shared : Tape {
    void validation_step(const Batch& b, int) override {
      log("all", full({}, 1.0 + b.dataloader_idx), {.add_dataloader_idx = false});
    }
  } shared;
  CHECK(Trainer(quiet({.limit_val_batches = 1})).validate(shared, data) ==
        Trainer::Results{{{"all", 1.5}}, {{"all", 1.5}}});
}

TEST_CASE("overfit_batches repeats the same batches, in order") {
  std::vector<std::string> said;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { said.push_back(text); });
  manual_seed(1);
  Tape model;
  const auto shuffled = points(32, {.batch_size = 4, .shuffle = true, .seed = 1});
  Trainer(quiet({.max_epochs = 3, .overfit_batches = 2})).fit(model, {.train = shuffled, .val = points(16)});
  set_warning_handler(former);
  CHECK(model.tape == "vvtt!vv|tt!vv|tt!vv|");
  for (std::size_t i = 2; i < 6; ++i) CHECK(model.sums[i] == model.sums[i - 2]);
  REQUIRE(said.size() == 1);
  CHECK(contains(said[0], "shuffling is turned off"));
}

TEST_CASE("loaders are recreated every n epochs") {
  struct Reloaded : LevinDataModule {
    int train = 0, val = 0;
    LoaderPtr train_dataloader() override {
      ++train;
      return points(4 + 4 * train);
    }
    Loaders val_dataloader() override {
      ++val;
      return points(4);
    }
  };
  const auto run = [](std::int64_t every, Reloaded& data) {
    Tape model;
    auto config = quiet({.max_epochs = 5, .reload_dataloaders_every_n_epochs = every, .num_sanity_val_steps = 0});
    Trainer(config).fit(model, data);
    return model.tape;
  };
  Reloaded once, each, second;
  CHECK(run(0, once) == "tt!v|tt!v|tt!v|tt!v|tt!v|");
  CHECK(once.train == 1);
  CHECK(run(1, each) == "tt!v|ttt!v|tttt!v|ttttt!v|tttttt!v|");
  CHECK(each.val == 5);
  CHECK(run(2, second) == "tt!v|tt!v|ttt!v|ttt!v|tttt!v|");
}

TEST_CASE("barebones skips everything but training") {
  struct Logging : Tape {
    int logged = 0;
    StepOutput training_step(const Batch& b, int i) override {
      log("anything", full({}, 1.0), {.on_step = false, .on_epoch = false});  // refused where log() works
      return Tape::training_step(b, i);
    }
  } model;
  const TempDir folder;
  Trainer trainer({.max_epochs = 1, .default_root_dir = folder.path, .barebones = true});
  trainer.fit(model, {.train = points(8), .val = points(4)});
  CHECK(model.tape == "tt!v|");
  CHECK(trainer.metrics().names().empty());
  CHECK(std::filesystem::is_empty(folder.path));
}

// Two runs are identical with any number of workers, with and without logging.
TEST_CASE("repro/two_runs_identical") {
  const auto run = [](int workers, bool logs) {
    Fabric::seed_everything(11);
    const TempDir folder;
    ToyModule model;
    auto config = quiet({.max_epochs = 2});
    config.default_root_dir = folder.path;
    config.logger = logs;
    config.log_every_n_steps = 1;
    if (logs) config.loggers = {std::make_shared<JsonLinesLogger>(folder.path / "log.jsonl")};
    Trainer(config).fit(
        model, {.train = points(30, {.batch_size = 4, .shuffle = true, .num_workers = workers}), .val = points(6)});
    return values_of(model);
  };
  const auto first = run(0, false);
  CHECK(run(0, false) == first);
  CHECK(run(0, true) == first);
  CHECK(run(1, false) == first);
  CHECK(run(3, true) == first);
}

TEST_CASE("estimated_stepping_batches counts windows, and asks for the loader") {
  struct Asking : ToyModule {
    std::int64_t estimated = 0;
    Optimizers configure_optimizers() override {
      estimated = estimated_stepping_batches();
      return ToyModule::configure_optimizers();
    }
  };
  const auto of = [](TrainerConfig config, const LoaderPtr& train) {
    Asking model;
    Trainer(quiet(std::move(config))).fit(model, {.train = train});
    return model.estimated;
  };
  CHECK(of({.max_epochs = 3}, points(20)) == 15);
  CHECK(of({.max_epochs = 3, .accumulate_grad_batches = 2}, points(20)) == 9);
  CHECK(of({.max_steps = 4}, points(20)) == 4);
  CHECK(of({.max_epochs = 1}, stream(8)) == -1);
}

TEST_CASE("intervals of validation are fractions, counts and times") {
  CHECK(CheckInterval::parse("0.5", "--x").batches().fraction() == 0.5);
  CHECK(CheckInterval::parse("20", "--x").batches().count() == 20);
  CHECK(CheckInterval::parse("00:00:10:00", "--x").time()->seconds() == 600);
}
