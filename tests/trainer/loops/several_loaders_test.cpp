// Evaluations over several loaders, and loaders given without a DataModule.
#include "trainer/toy.h"

#include <levin/data/npy.h>

#include <csignal>

using namespace levin;
using namespace levin::test;

namespace {

/// Its steps take the loader's index.
struct ByLoader : ToyModule {
  std::vector<std::pair<int, int>> seen;  // loader and batch

  using ToyModule::test_step;
  using ToyModule::validation_step;
  void validation_step(const Batch& b, int index, int dataloader_idx) override {
    CHECK(b.dataloader_idx == dataloader_idx);
    seen.emplace_back(dataloader_idx, index);
    log("val_loss", 10.0 * dataloader_idx + index);
    log("noise", randn({}));
  }
  void on_validation_epoch_end() override { log("whole", 7.0); }
  void test_step(const Batch& b, int, int dataloader_idx) override {
    log("rows", static_cast<double>(b.size()), {.reduce = Reduce::sum});
    log("idx", dataloader_idx);
  }
  Tensor predict_step(const Batch& b, int index, int dataloader_idx) override {
    return full({b.size()}, 100.0 * dataloader_idx + index);
  }
};

data::DataLoader points(std::int64_t n, std::int64_t batch_size = 4) {
  return data::DataLoader(toy_points(n), {.batch_size = batch_size});
}

}  // namespace

TEST_CASE("validate, test and predict take a DataLoader or several, and return the results of each") {
  manual_seed(1);
  ByLoader model;
  data::DataLoader a = points(8), b = points(10);
  Trainer trainer(quiet());

  CHECK(trainer.test(model, a) == Trainer::Results{{{"idx", 0}, {"rows", 8}}});
  const std::vector<LoaderPtr> list{borrowed(a), borrowed(b)};
  for (const auto& results : {trainer.test(model, Loaders{a, b}), trainer.test(model, list)})
    CHECK(results == Trainer::Results{{{"idx/dataloader_idx_0", 0}, {"rows/dataloader_idx_0", 8}},
                                      {{"idx/dataloader_idx_1", 1}, {"rows/dataloader_idx_1", 10}}});

  const auto one = trainer.validate(model, b);
  REQUIRE(one.size() == 1);
  CHECK(one[0].at("val_loss") == 0.8);  // 0, 1 and 2 weighted by 4, 4 and 2 samples
  CHECK(one[0].at("whole") == 7);
  const auto both = trainer.validate(model, Loaders{a, b});
  REQUIRE(both.size() == 2);
  CHECK(both[0].at("val_loss/dataloader_idx_0") == 0.5);
  CHECK(both[1].at("val_loss/dataloader_idx_1") == 10.8);
  CHECK_FALSE(both[0].contains("val_loss/dataloader_idx_1"));
  CHECK(both[0].at("whole") == 7);
  CHECK(both[1].at("whole") == 7);
  CHECK(trainer.validate(model).size() == 2);  // those of the last run
  CHECK(trainer.num_val_batches() == std::vector<std::int64_t>{2, 3});

  const Predictions predictions = trainer.predict(model, Loaders{a, b});
  REQUIRE(predictions.size() == 2);
  REQUIRE(predictions[0].size() == 2);
  REQUIRE(predictions[1].size() == 3);
  CHECK(predictions[1][2].to_vector<float>() == std::vector<float>{102, 102});
  CHECK(trainer.predict(model, a)[0][1].size(0) == 4);
}

TEST_CASE("fit takes several validation loaders; the sanity check, limits and counts cover each") {
  manual_seed(1);
  ByLoader model;
  data::DataLoader train = points(8), a = points(12), b = points(20);
  std::vector<std::int64_t> done, total;
  auto config = quiet({.max_epochs = 1, .limit_val_batches = 3, .num_sanity_val_steps = 1});
  config.callbacks = {LambdaCallback({.on_validation_batch_end = [&](RunContext& run, const Batch& batch, int index) {
    CHECK(model.seen.back() == std::pair(batch.dataloader_idx, index));
    done.push_back(run.eval_batches_done);
    total.push_back(run.eval_batches);
  }})};
  Trainer trainer(config);
  trainer.fit(model, train, {borrowed(a), borrowed(b)});
  CHECK(model.seen == std::vector<std::pair<int, int>>{{0, 0}, {1, 0}, {0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}});
  CHECK(done == std::vector<std::int64_t>{1, 2, 1, 2, 3, 4, 5, 6});
  CHECK(total == std::vector<std::int64_t>{2, 2, 6, 6, 6, 6, 6, 6});
  CHECK(trainer.num_sanity_val_batches() == std::vector<std::int64_t>{1, 1});
}

TEST_CASE("a batch that a transfer hook makes keeps the index of its loader") {
  struct Rewrites : ByLoader {
    Batch on_after_batch_transfer(Batch batch) override { return {batch[0], batch[1]}; }
  } model;
  data::DataLoader a = points(4), b = points(4);
  Trainer(quiet()).validate(model, Loaders{a, b});
  CHECK(model.seen == std::vector<std::pair<int, int>>{{0, 0}, {1, 0}});
}

TEST_CASE("the progress bar counts the batches of all loaders") {
  const TempDir folder;
  const auto file = folder.path / "bar";
  std::FILE* const out = std::fopen(file.c_str(), "w");
  REQUIRE(out);
  ByLoader model;
  data::DataLoader a = points(8), b = points(12);
  auto config = quiet();
  config.enable_progress_bar = true;
  config.callbacks = {ProgressBar({.out = out, .terminal = false, .plain_interval = 0})};
  Trainer(config).test(model, Loaders{a, b});
  std::fclose(out);
  const std::string text = io::read_text(file);
  for (const char* counts : {" 1/5", " 2/5", " 3/5", " 4/5", " 5/5"}) CHECK(contains(text, counts));
}

TEST_CASE("a fit interrupted in each batch of two validation loaders has the bits of one that is not") {
  struct Interrupt : Callback {
    bool done = false;
    void on_validation_batch_start(RunContext& run, const Batch&, int) override {
      if (!run.sanity_checking && !std::exchange(done, true)) std::raise(SIGINT);
    }
  };
  const auto run = [](const std::filesystem::path& dir, bool interrupts) {
    for (int interruptions = 0;; ++interruptions) {
      manual_seed(interruptions == 0 ? 3 : 999);
      ByLoader model;
      data::DataLoader train = points(8), a = points(12), b = points(8);
      auto config = quiet({.max_epochs = 2});
      std::vector<std::int64_t> done;
      config.callbacks = {ModelCheckpoint({.dirpath = dir, .save_top_k = 0}),
                          LambdaCallback({.on_validation_batch_end = [&](RunContext& r, const Batch&, int) {
                            done.push_back(r.eval_batches_done);
                          }})};
      if (interrupts) config.callbacks.push_back(Interrupt());
      Trainer trainer(config);
      try {
        trainer.fit(model, train, Loaders{a, b}, interruptions == 0 ? "" : "last");
      } catch (const Interrupted&) {
        if (interruptions % 5 > 0) CHECK(done == std::vector<std::int64_t>{interruptions % 5 + 1});
        continue;
      }
      CHECK(interruptions == (interrupts ? 10 : 0));
      return std::pair(values_of(model), trainer.metrics().results_by_loader(Split::validation, 2));
    }
  };
  const TempDir one, other;
  const auto whole = run(one.path, false), cut = run(other.path, true);
  CHECK(cut.first == whole.first);
  CHECK(cut.second == whole.second);
  REQUIRE(whole.second.size() == 2);
  CHECK(whole.second[0].contains("noise/dataloader_idx_0"));
  CHECK(whole.second[1].contains("noise/dataloader_idx_1"));
}

TEST_CASE("prediction files of several loaders have names of their own") {
  const TempDir folder;
  ByLoader model;
  data::DataLoader a = points(8), b = points(4);
  auto config = quiet();
  config.callbacks = {PredictionWriter(folder.path, WriteInterval::batch_and_epoch)};
  Trainer(config).predict(model, Loaders{a, b});
  const auto rows = [&](const char* name) { return data::load_npy(folder.path / name).to_vector<float>(); };
  CHECK(rows("predictions_rank0_dataloader0_batch000001.npy") == std::vector<float>{1, 1, 1, 1});
  CHECK(rows("predictions_rank0_dataloader1_batch000000.npy") == std::vector<float>{100, 100, 100, 100});
  CHECK(rows("predictions_rank0_dataloader0.npy") == std::vector<float>{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(rows("predictions_rank0_dataloader1.npy").size() == 4);
}
