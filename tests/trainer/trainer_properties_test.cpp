// The properties of a Trainer about its runs.
#include <csignal>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;
using Counts = std::vector<std::int64_t>;
using Named = std::map<std::string, double>;

namespace {

std::shared_ptr<data::DataLoader> loader_of(std::int64_t n) {
  return std::make_shared<data::DataLoader>(toy_points(n), data::DataLoaderOptions{.batch_size = 4});
}

std::int64_t steps(TrainerConfig config, std::int64_t points = 40) {
  struct Asking : ToyModule {
    std::int64_t said = 0;
    Optimizers configure_optimizers() override {
      said = estimated_stepping_batches();
      return ToyModule::configure_optimizers();
    }
  } model;
  Trainer trainer(quiet(std::move(config)));
  model.said = -2;
  trainer.fit(model, {.train = loader_of(points)});
  CHECK(trainer.estimated_stepping_batches() == model.said);
  return model.said;
}

}  // namespace

TEST_CASE("trainer/estimated_stepping_batches") {
  CHECK(steps({.max_epochs = 3}) == 30);
  CHECK(steps({.max_epochs = 3, .accumulate_grad_batches = 4}) == 9);  // 4 + 4 + 2 batches an epoch
  CHECK(steps({.max_epochs = 3, .max_steps = 7}) == 7);
  CHECK(steps({.max_epochs = 3, .max_steps = 70}) == 30);
  CHECK(steps({.max_epochs = 2, .limit_train_batches = 3}) == 6);
  CHECK(steps({.max_epochs = 2, .limit_train_batches = 0.5, .accumulate_grad_batches = 2}) == 6);
  CHECK(steps({.max_epochs = 2, .overfit_batches = 1}) == 2);
  CHECK(steps({.max_epochs = 7, .fast_dev_run = 3}) == 3);
  CHECK(steps({.max_epochs = 2, .accumulate_grad_batches = 100}) == 2);
  CHECK(steps({.max_epochs = -1, .max_steps = 5}) == 5);
  CHECK(steps({.max_steps = 12}) == 12);
}

TEST_CASE("trainer/estimated_stepping_batches of an endless run, of a stream, of a plan") {
  struct Endless : Callback {
    void on_train_epoch_start(RunContext& run) override { run.stop.request("enough"); }
  };
  CHECK(steps({.max_epochs = -1, .callbacks = {Endless()}}) == -1);
  // 10 batches an epoch: one a step in two epochs, four a step in the third, ten a step in the last two.
  CHECK(steps({.max_epochs = 5, .callbacks = {GradientAccumulationScheduler({{2, 4}, {3, 10}})}}) == 25);
  CHECK(steps({.max_epochs = 2, .callbacks = {GradientAccumulationScheduler({{0, 5}, {4, 10}})}}) == 4);

  const Trainer fresh(quiet());
  CHECK(contains(message_of<UsageError>([&] { static_cast<void>(fresh.estimated_stepping_batches()); }),
                 "no fit has counted its batches yet"));
}

TEST_CASE("trainer/number of batches by stage and loader") {
  ToyModule model;
  Trainer trainer(
      quiet({.max_epochs = 1, .limit_train_batches = 4, .limit_val_batches = 0.5, .num_sanity_val_steps = 1}));
  CHECK(trainer.num_training_batches() == 0);
  CHECK(trainer.num_val_batches().empty());
  trainer.fit(model, {.train = loader_of(40), .val = {loader_of(16), loader_of(32)}});
  CHECK(trainer.num_training_batches() == 4);
  CHECK(trainer.num_val_batches() == Counts{2, 4});
  CHECK(trainer.num_sanity_val_batches() == Counts{1, 1});
  trainer.test(model, {.test = loader_of(9)});
  CHECK(trainer.num_test_batches() == Counts{3});
  trainer.predict(model, {.predict = {loader_of(4), loader_of(8)}});
  CHECK(trainer.num_predict_batches() == Counts{1, 2});
  CHECK(trainer.num_training_batches() == 4);
  trainer.validate(model, {.val = loader_of(40)});
  CHECK(trainer.num_val_batches() == Counts{5});
  trainer.fit(model, {.train = loader_of(8)});  // validates on nothing
  CHECK(trainer.num_training_batches() == 2);
  CHECK(trainer.num_val_batches().empty());
}

TEST_CASE("trainer/metrics for callbacks, loggers and the bar") {
  struct Logging : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      log("both", 1.0 + i, {.prog_bar = true, .on_epoch = true});
      log("bar_only", 5.0, {.prog_bar = true, .logger = false});
      log("zero_only", 6.0, {.rank_zero_only = true});
      return cross_entropy((*this)(b[0]), b[1]);
    }
    void validation_step(const Batch&, int) override { log("val", 3.0); }
  } model;
  Trainer trainer(quiet({.max_epochs = 1}));
  CHECK(trainer.callback_metrics().empty());
  trainer.fit(model, {.train = loader_of(8), .val = loader_of(4)});
  CHECK(trainer.callback_metrics() ==
        Named{{"both", 1.5}, {"both_epoch", 1.5}, {"both_step", 2}, {"bar_only", 5}, {"val", 3}});
  CHECK(trainer.logged_metrics() == Named{{"both_epoch", 1.5}, {"both_step", 2}, {"zero_only", 6}, {"val", 3}});
  CHECK(trainer.progress_bar_metrics() == Named{{"both_epoch", 1.5}, {"both_step", 2}, {"bar_only", 5}});
}

TEST_CASE("trainer/ranks of one process") {
  const Trainer trainer(quiet());
  CHECK(trainer.world_size() == 1);
  CHECK(trainer.global_rank() == 0);
  CHECK(trainer.local_rank() == 0);
  CHECK(trainer.node_rank() == 0);
  CHECK(trainer.is_global_zero());
}

TEST_CASE("trainer/ckpt_path is the checkpoint that a run took its weights from") {
  const TempDir folder;
  ToyModule model;
  Trainer trainer(quiet({.max_epochs = 1}));
  trainer.fit(model, {.train = loader_of(8), .val = loader_of(8)});
  CHECK(trainer.ckpt_path().empty());
  trainer.save_checkpoint(folder.path / "c");
  trainer.validate(model, {}, (folder.path / "c").string());
  CHECK(trainer.ckpt_path() == folder.path / "c");
  trainer.validate(model);
  CHECK(trainer.ckpt_path().empty());
}

TEST_CASE("trainer/a signal shows while the run goes on and after it") {
  struct Struck : ToyModule {
    const Trainer* trainer = nullptr;
    int signal = 0;
    bool seen = false, interrupted = true;
    StepOutput training_step(const Batch& b, int i) override {
      if (signal != 0) std::raise(signal);
      seen = trainer->received_sigterm();
      interrupted = trainer->interrupted();
      return ToyModule::training_step(b, i);
    }
  } model;
  Trainer trainer(quiet({.max_epochs = 1}));
  model.trainer = &trainer;
  for (const int signal : {SIGTERM, SIGINT}) {
    model.signal = signal;
    CHECK_THROWS_AS(trainer.fit(model, {.train = loader_of(8)}), Interrupted);
    CHECK(model.seen == (signal == SIGTERM));
    CHECK_FALSE(model.interrupted);  // not yet
    CHECK(trainer.received_sigterm() == (signal == SIGTERM));
    CHECK(trainer.interrupted());
  }
  model.signal = 0;
  trainer.fit(model, {.train = loader_of(8)});
  CHECK_FALSE(trainer.received_sigterm());
  CHECK_FALSE(trainer.interrupted());
}
