// The number of batches, the times of validation, and configurations that are refused.
#include "support/comparison.h"
#include "trainer/toy.h"

#include <levin/kernels/cuda.h>

using namespace levin;
using namespace levin::test;

namespace {

/// "t" for a training step, "v" for a validation batch, "|" at each epoch's end, "T" for a test batch.
struct Tape : ToyModule {
  std::string tape;
  StepOutput training_step(const Batch& b, int i) override {
    tape += 't';
    return ToyModule::training_step(b, i);
  }
  void validation_step(const Batch&, int) override { tape += 'v'; }
  void test_step(const Batch&, int) override { tape += 'T'; }
  Tensor predict_step(const Batch& b, int) override {
    tape += 'P';
    return b[1];
  }
  void on_train_epoch_end() override { tape += '|'; }
};

std::string tape_of(TrainerConfig config) {
  manual_seed(1);
  Tape model;
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  if (!config.max_epochs && config.max_steps < 0) config.max_epochs = 2;
  Trainer(quiet(config)).fit(model, train, val);
  return model.tape;
}

}  // namespace

TEST_CASE("the batches that run, and their order") {
  CHECK(tape_of({}) == "vvttttvv|ttttvv|");
  CHECK(tape_of({.num_sanity_val_steps = 0}) == "ttttvv|ttttvv|");
  CHECK(tape_of({.limit_val_batches = 1, .num_sanity_val_steps = -1}) == "vttttv|ttttv|");
  CHECK(tape_of({.limit_train_batches = 0.5, .num_sanity_val_steps = 0}) == "ttvv|ttvv|");
  CHECK(tape_of({.limit_train_batches = 1, .num_sanity_val_steps = 0}) == "tvv|tvv|");
  CHECK(tape_of({.limit_train_batches = 100, .num_sanity_val_steps = 0}) == "ttttvv|ttttvv|");
  CHECK(tape_of({.limit_train_batches = 0}) == "");
  CHECK(tape_of({.limit_val_batches = 0}) == "tttt|tttt|");
  CHECK(tape_of({.limit_val_batches = 1, .val_check_interval = 0.5, .num_sanity_val_steps = 0}) == "ttvttv|ttvttv|");
  CHECK(tape_of({.limit_val_batches = 1, .val_check_interval = 3, .num_sanity_val_steps = 0}) == "tttvt|tttvt|");
  CHECK(tape_of({.max_epochs = 4, .limit_val_batches = 1, .check_val_every_n_epoch = 2, .num_sanity_val_steps = 0}) ==
        "tttt|ttttv|tttt|ttttv|");
  CHECK(tape_of({.max_steps = 6, .num_sanity_val_steps = 0}) == "ttttvv|tt|");
  CHECK(tape_of({.max_epochs = 1, .max_steps = 6, .num_sanity_val_steps = 0}) == "ttttvv|");
  CHECK(tape_of({.max_epochs = 0}) == "");
  CHECK(tape_of({.max_steps = 3, .num_sanity_val_steps = 0, .accumulate_grad_batches = 3}) == "ttttvv|ttt|");
  CHECK(tape_of({.fast_dev_run = 1}) == "tv|");
  CHECK(tape_of({.max_epochs = 7, .fast_dev_run = true, .limit_val_batches = 0.5}) == "tv|");
  CHECK(tape_of({.fast_dev_run = 3}) == "tttvv|");
}

TEST_CASE("limits of test and predict") {
  Tape model;
  const auto loader = std::make_shared<data::DataLoader>(toy_points(16), data::DataLoaderOptions{.batch_size = 4});
  Trainer trainer(quiet({.limit_test_batches = 0.5, .limit_predict_batches = 3}));
  trainer.test(model, {.test = loader});
  CHECK(trainer.predict(model, {.predict = loader})[0].size() == 3);
  CHECK(model.tape == "TTPPP");
}

TEST_CASE("sched/stepped_when: by step or by epoch, and plateau by its monitor") {
  const auto rates = [](LevinModule& model, std::int64_t epochs) {
    struct Rates : Callback {
      explicit Rates(std::vector<double>& r) : rates(&r) {}
      std::vector<double>* rates;
      void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) override {
        rates->push_back(run.learning_rates.at(0));
      }
    };
    std::vector<double> out;
    data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
    auto config = quiet({.max_epochs = epochs});
    config.callbacks = {Rates(out)};
    Trainer(config).fit(model, train, val);
    return out;
  };
  struct ByStep : ToyModule {
    Optimizers configure_optimizers() override {
      return Optimizers(optim::SGD(parameters(), {.lr = 1.0}))
          .schedule([](auto& o) { return optim::StepLR(o, {.step_size = 1, .gamma = 0.5}); },
                    {.interval = Interval::step, .frequency = 2});
    }
  } by_step;
  CHECK(rates(by_step, 2) == std::vector<double>{1.0, 0.5, 0.5, 0.25});
  struct ByEpoch : ToyModule {
    Optimizers configure_optimizers() override {
      return Optimizers(optim::SGD(parameters(), {.lr = 1.0})).schedule([](auto& o) {
        return optim::StepLR(o, {.step_size = 1, .gamma = 0.5});
      });
    }
  } by_epoch;
  CHECK(rates(by_epoch, 3) == std::vector<double>{1.0, 0.5, 0.5, 0.25, 0.25, 0.125});
  struct Plateau : ToyModule {
    void validation_step(const Batch&, int) override { log("flat", 1.0); }
    Optimizers configure_optimizers() override {
      return Optimizers(optim::SGD(parameters(), {.lr = 1.0}))
          .schedule([](auto& o) { return optim::ReduceLROnPlateau(o, {.factor = 0.1, .patience = 0}); },
                    {.monitor = "flat"});
    }
  } plateau;
  const auto r = rates(plateau, 3);
  CHECK(r[2] == 1.0);
  CHECK(r[4] == approx(0.1, {.relative = 1e-12}));
}

TEST_CASE("invalid configurations are refused with one sentence") {
  const auto said = [](const TrainerConfig& c) { return message_of<UsageError>([&] { Trainer trainer(c); }); };
  CHECK(contains(said({.precision = "8-mixed"}), "--precision 8-mixed: there are 32-true, 64-true, 16-mixed"));
  CHECK(contains(said({.strategy = "horde"}), "--strategy horde: there are single, dp, ddp"));
  if (!cuda::is_available()) CHECK(contains(said({.accelerator = "cuda"}), "--accelerator cuda"));
  CHECK(contains(said({.accelerator = "cpu", .devices = "[0]"}), "--devices [0]"));
  CHECK(contains(said({.max_epochs = -2}), "--max-epochs -2"));
  CHECK(contains(said({.limit_train_batches = 1.5}), "--limit-train-batches 1.5"));
  CHECK(contains(said({.limit_val_batches = -1}), "--limit-val-batches -1"));
  CHECK(contains(said({.val_check_interval = 0}), "--val-check-interval 0"));
  CHECK(contains(said({.accumulate_grad_batches = 0}), "--accumulate-grad-batches 0"));
  CHECK(contains(said({.gradient_clip_val = 0.0}), "--gradient-clip-val 0"));
  CHECK(contains(said({.gradient_clip_algorithm = "max"}), "choose norm or value"));
  CHECK(contains(said({.nccl_algo = "star"}), "--nccl-algo star: choose ring, tree or auto."));
  CHECK(contains(message_of<UsageError>([] { tape_of({.val_check_interval = 5}); }), "an epoch has 4 batches"));
  CHECK(contains(message_of<UsageError>([] { tape_of({.limit_train_batches = 0.1}); }), "leaves none of 4 batches"));
  LevinModule bare;
  data::DataLoader train(toy_points(4), {.batch_size = 4});
  CHECK(contains(message_of<UsageError>([&] { Trainer(quiet()).fit(bare, train); }), "no configure_optimizers"));
  ToyModule toy;
  CHECK(contains(message_of<UsageError>([&] { Trainer(quiet()).fit(toy, DataModule{}); }), "no loader"));
  CHECK(contains(message_of<UsageError>([&] { Trainer(quiet()).test(toy); }), "no loader"));
  CHECK(contains(message_of<UsageError>([&] { Trainer(quiet()).test(bare); }), "LevinModule has no test_step"));
}
