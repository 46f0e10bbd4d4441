// Runs that an exception ends.
#include "trainer/toy.h"

#include <vector>

using namespace levin;
using namespace levin::test;

TEST_CASE("callbacks see no optimizers after a fit has failed, and an exception of on_exception ends the run too") {
  struct Thrower : ToyModule {
    StepOutput training_step(const Batch&, int) override { throw Error("boom"); }
  } model;
  struct Witness : Callback {
    explicit Witness(std::vector<bool>& s) : seen(&s) {}
    std::vector<bool>* seen;
    void note(const RunContext& run) { seen->push_back(run.optimizers || run.step_options || run.manual); }
    void on_fit_start(RunContext& run) override { note(run); }
    void on_exception(RunContext& run, const std::exception&) override {
      note(run);
      throw Error("a second one");
    }
  };
  std::vector<bool> seen;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {Witness(seen)};
  Trainer trainer(config);
  CHECK_THROWS_WITH(trainer.fit(model, train), "a second one");
  CHECK(seen == std::vector<bool>{true, false});
  CHECK(trainer.status() == RunStatus::failed);
  CHECK_FALSE(trainer.is_last_batch());  // no longer asks the run that ended
}

TEST_CASE("thrown objects that are not exceptions are passed on too") {
  struct Thrower : ToyModule {
    StepOutput training_step(const Batch&, int) override { throw 7; }
  } model;
  struct Witness : Callback {
    explicit Witness(int& s) : seen(&s) {}
    int* seen;
    void on_exception(RunContext&, const std::exception&) override { ++*seen; }
  };
  int seen = 0;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {Witness(seen)};
  Trainer trainer(config);
  CHECK_THROWS_AS(trainer.fit(model, train), int);
  CHECK(seen == 1);
}
