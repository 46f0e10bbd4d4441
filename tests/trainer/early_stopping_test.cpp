// EarlyStopping as a table: values in, the check that stops out.
#include <cmath>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Logs a given value at every validation.
struct Scripted : ToyModule {
  explicit Scripted(std::vector<double> v) : values(std::move(v)) {}
  std::vector<double> values;
  std::size_t at = 0;
  void validation_step(const Batch&, int) override { log("score", values[std::min(at++, values.size() - 1)]); }
};

struct Result {
  std::int64_t epochs = 0;
  EarlyStopping::Reason reason{};
  double best = 0;
};

Result run(const std::vector<double>& values, EarlyStoppingOptions options, TrainerConfig config = {}) {
  manual_seed(1);
  Scripted model(values);
  data::DataLoader train(toy_points(4), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  config = quiet(config);
  config.num_sanity_val_steps = 0;
  if (!config.max_epochs) config.max_epochs = static_cast<std::int64_t>(values.size());
  options.monitor = "score";
  const auto early = std::make_shared<EarlyStopping>(options);
  config.callbacks = {early};
  Trainer trainer(config);
  trainer.fit(model, train, val);
  return {trainer.current_epoch(), early->reason(), early->best_score()};
}

}  // namespace

TEST_CASE("EarlyStopping") {
  using Reason = EarlyStopping::Reason;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  struct Row {
    const char* name;
    std::vector<double> values;
    EarlyStoppingOptions options;
    std::int64_t epochs;
    Reason reason;
    double best;
  };
  const std::vector<Row> rows = {
      {"always better", {5, 4, 3, 2, 1}, {.patience = 2}, 5, Reason::none, 1},
      {"patience 2", {3, 2, 2.5, 2.5, 1}, {.patience = 2}, 4, Reason::patience, 2},
      {"patience starts anew", {3, 2, 2.5, 1, 1.5, 1.5, 0}, {.patience = 2}, 6, Reason::patience, 1},
      {"patience 0 and 1 stop at the first", {3, 3, 1}, {.patience = 0}, 2, Reason::patience, 3},
      {"equal is no improvement", {3, 3, 3, 3}, {.patience = 3}, 4, Reason::patience, 3},
      {"min_delta", {3, 2.95, 2.91, 1}, {.min_delta = 0.1, .patience = 2}, 3, Reason::patience, 3},
      {"min_delta passed by the sum", {3, 2.95, 2.85, 2}, {.min_delta = 0.1, .patience = 2}, 4, Reason::none, 2},
      {"max", {1, 2, 1.5, 1.5, 3}, {.patience = 2, .mode = Mode::max}, 4, Reason::patience, 2},
      {"max with min_delta",
       {1, 1.05, 1.05, 2},
       {.min_delta = 0.1, .patience = 2, .mode = Mode::max},
       3,
       Reason::patience,
       1},
      {"NaN", {3, NAN, 1}, {}, 2, Reason::non_finite, 3},
      {"infinity", {3, kInf, 1}, {}, 2, Reason::non_finite, 3},
      {"NaN unchecked", {3, NAN, 1}, {.patience = 3, .check_finite = false}, 3, Reason::none, 1},
      {"stopping threshold", {3, 0.4, 0.3}, {.stopping_threshold = 0.5}, 2, Reason::stopping_threshold, 3},
      {"divergence threshold", {3, 20, 1}, {.divergence_threshold = 10.0}, 2, Reason::divergence_threshold, 3},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    const Result r = run(row.values, row.options);
    CHECK(r.epochs == row.epochs);
    CHECK(r.reason == row.reason);
    CHECK(r.best == row.best);
  }
}

TEST_CASE("an early stop waits for min_epochs and min_steps") {
  CHECK(run({3, 3, 3, 3, 3, 3}, {.patience = 1}, {.min_epochs = 4}).epochs == 4);
  CHECK(run({3, 3, 3, 3, 3, 3}, {.patience = 1}, {.min_steps = 5}).epochs == 5);
}

TEST_CASE("a monitor that was never logged is named, with those that were") {
  ToyModule model;
  data::DataLoader train(toy_points(4), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2});
  config.callbacks = {EarlyStopping({.monitor = "val_los"})};
  Trainer trainer(config);
  const auto text = message_of<UsageError>([&] { trainer.fit(model, train, val); });
  CHECK_MESSAGE(contains(text, "\"val_los\" was not logged"), text);
  CHECK_MESSAGE(contains(text, "val_loss"), text);
  config.callbacks = {EarlyStopping({.monitor = "val_los", .strict = false})};
  Trainer(config).fit(model, train, val);
  CHECK_THROWS_AS(EarlyStopping({}), UsageError);
  CHECK_THROWS_AS(EarlyStopping({.monitor = "x", .patience = -1}), UsageError);
}

TEST_CASE("without validation it watches training") {
  manual_seed(1);
  ToyModule model;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 20});
  const auto early =
      std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "train_loss", .stopping_threshold = 100.0});
  config.callbacks = {early};
  Trainer trainer(config);
  trainer.fit(model, train);
  CHECK(trainer.current_epoch() == 1);
  CHECK(early->reason() == EarlyStopping::Reason::stopping_threshold);
}

TEST_CASE("a stop token ends the run after the current step") {
  manual_seed(1);
  struct Stopper : Callback {
    void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int index) override {
      if (index == 1) run.stop.request("enough");
    }
  };
  ToyModule model;
  data::DataLoader train(toy_points(16), {.batch_size = 4});
  auto config = quiet({.max_epochs = 5});
  config.callbacks = {Stopper()};
  Trainer trainer(config);
  trainer.fit(model, train);
  CHECK(model.losses.size() == 2);
  CHECK(trainer.stop_token().reason() == "enough");
}
