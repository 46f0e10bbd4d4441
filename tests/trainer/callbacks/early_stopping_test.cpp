// EarlyStopping as a table: values and the check that stops.
#include <cmath>

#include "trainer/callbacks/scripted.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Result {
  std::int64_t epochs = 0;
  EarlyStopping::Reason reason{};
  double best = 0;
};

Result run(const std::vector<double>& values, EarlyStoppingOptions options, TrainerConfig config = {}) {
  manual_seed(1);
  ScoreScript model(values);
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

TEST_CASE("callbacks/early_stopping_table: values in, the check that stops and its reason out") {
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
      {"always better", {5, 4, 3, 2, 1}, {.patience = 2}, 5, Reason::not_stopped, 1},
      {"patience 2", {3, 2, 2.5, 2.5, 1}, {.patience = 2}, 4, Reason::patience, 2},
      {"patience starts anew", {3, 2, 2.5, 1, 1.5, 1.5, 0}, {.patience = 2}, 6, Reason::patience, 1},
      {"patience 0 and 1 stop at the first", {3, 3, 1}, {.patience = 0}, 2, Reason::patience, 3},
      {"equal is no improvement", {3, 3, 3, 3}, {.patience = 3}, 4, Reason::patience, 3},
      {"min_delta", {3, 2.95, 2.91, 1}, {.min_delta = 0.1, .patience = 2}, 3, Reason::patience, 3},
      {"min_delta passed by the sum", {3, 2.95, 2.85, 2}, {.min_delta = 0.1, .patience = 2}, 4, Reason::not_stopped, 2},
      {"max", {1, 2, 1.5, 1.5, 3}, {.patience = 2, .mode = Mode::max}, 4, Reason::patience, 2},
      {"max with min_delta",
       {1, 1.05, 1.05, 2},
       {.min_delta = 0.1, .patience = 2, .mode = Mode::max},
       3,
       Reason::patience,
       1},
      {"NaN", {3, NAN, 1}, {}, 2, Reason::non_finite, 3},
      {"infinity", {3, kInf, 1}, {}, 2, Reason::non_finite, 3},
      {"NaN unchecked", {3, NAN, 1}, {.patience = 3, .check_finite = false}, 3, Reason::not_stopped, 1},
      {"stopping threshold", {3, 0.4, 0.3}, {.stopping_threshold = 0.5}, 2, Reason::threshold, 3},
      {"thresholds are strict",
       {3, 0.5, 10, 1},
       {.stopping_threshold = 0.5, .divergence_threshold = 10.0},
       4,
       Reason::not_stopped,
       0.5},
      {"thresholds of max", {3, 5, 9}, {.mode = Mode::max, .stopping_threshold = 4.0}, 2, Reason::threshold, 3},
      {"divergence of max", {3, 1, 9}, {.mode = Mode::max, .divergence_threshold = 2.0}, 2, Reason::divergence, 3},
      {"finite comes first", {3, kInf}, {.divergence_threshold = 10.0}, 2, Reason::non_finite, 3},
      {"divergence threshold", {3, 20, 1}, {.divergence_threshold = 10.0}, 2, Reason::divergence, 3},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    const Result r = run(row.values, row.options);
    CHECK(r.epochs == row.epochs);
    CHECK(r.reason == row.reason);
    CHECK(r.best == row.best);
  }
}

TEST_CASE("callbacks/early_stopping_min_epochs: an early stop waits for min_epochs and min_steps") {
  CHECK(run({3, 3, 3, 3, 3, 3}, {.patience = 1}, {.min_epochs = 4}).epochs == 4);
  CHECK(run({3, 3, 3, 3, 3, 3}, {.patience = 1}, {.min_steps = 5}).epochs == 5);
}

TEST_CASE("callbacks/early_stopping_strict: a monitor that was never logged is named, with those that were") {
  ToyModule model;
  data::DataLoader train(toy_points(4), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2});
  config.callbacks = {EarlyStopping({.monitor = "val_los"})};
  Trainer trainer(config);
  const auto text = message_of<UsageError>([&] { trainer.fit(model, train, val); });
  CHECK_MESSAGE(contains(text, "\"val_los\" was not logged"), text);
  CHECK_MESSAGE(contains(text, "Did you mean val_loss?"), text);
  CHECK_MESSAGE(model.losses.empty(), "the sanity check says so, before training");
  config.callbacks = {EarlyStopping({.monitor = "val_los", .strict = false})};
  Trainer(config).fit(model, train, val);
  CHECK_THROWS_AS(EarlyStopping({}), UsageError);
  CHECK_THROWS_AS(EarlyStopping({.monitor = "x", .patience = -1}), UsageError);
}

TEST_CASE("callbacks/early_stopping_where: after the epoch where each has one validation, else after validations") {
  const auto checks = [](TrainerConfig config, std::optional<bool> at_epoch_end) {
    manual_seed(1);
    ScoreScript model({1, 2, 3, 4, 5, 6, 7, 8, 9});
    data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
    config = quiet(config);
    config.max_epochs = 2;
    config.num_sanity_val_steps = 0;
    const auto early = std::make_shared<EarlyStopping>(
        EarlyStoppingOptions{.monitor = "score", .patience = 100, .check_on_train_epoch_end = at_epoch_end});
    config.callbacks = {early};
    Trainer(config).fit(model, train, val);
    return early->wait_count() + 1;  // the first is the best
  };
  CHECK(checks({}, {}) == 2);
  CHECK(checks({.val_check_interval = 0.5}, {}) == 4);
  CHECK(checks({.val_check_interval = 2}, {}) == 4);
  CHECK(checks({.val_check_interval = 0.5}, true) == 2);
  CHECK(checks({}, false) == 2);
  CHECK(checks({.check_val_every_n_epoch = 2}, {}) == 1);
}

TEST_CASE("callbacks/early_stopping_state: reason, message and patience go through a checkpoint's state") {
  manual_seed(1);
  ScoreScript model({3, 3, 3, 3});
  data::DataLoader train(toy_points(4), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  auto config = quiet({.max_epochs = 9, .num_sanity_val_steps = 0});
  const auto early = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "score", .patience = 2});
  config.callbacks = {early};
  Trainer trainer(config);
  trainer.fit(model, train, val);
  CHECK(early->stopped_epoch() == 2);
  CHECK(early->reason_message() == "score = 3 has not improved on 3 in 2 checks");
  CHECK(trainer.stop_token().reason() == early->reason_message());
  EarlyStopping other({.monitor = "score", .patience = 7});
  other.load_state(early->state());
  CHECK(other.reason() == EarlyStopping::Reason::patience);
  CHECK(other.patience() == 2);
  CHECK(other.wait_count() == 2);
  CHECK(other.best_score() == 3);
}

TEST_CASE("callbacks/monitors_in_sanity_check: of checkpoints and plateau schedulers too") {
  struct Plateau : ToyModule {
    std::string monitor = "val_los";
    Optimizers configure_optimizers() override {
      return Optimizers(optim::SGD(parameters(), {.lr = 0.1}))
          .schedule([](auto& opt) { return optim::ReduceLROnPlateau(opt); }, {.monitor = monitor});
    }
  };
  const auto refused = [](LevinModule& model, std::vector<CallbackPtr> callbacks) {
    int steps = 0;
    data::DataLoader train(toy_points(4), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
    auto config = quiet({.max_epochs = 1});
    callbacks.push_back(LambdaCallback({.on_train_start = [&](RunContext&) { ++steps; }}));
    config.callbacks = std::move(callbacks);
    const auto text = message_of<UsageError>([&] { Trainer(config).fit(model, train, val); });
    CHECK_MESSAGE(contains(text, "known are: val_loss, val_acc"), text);
    return steps == 0;
  };
  Plateau plateau;
  CHECK(refused(plateau, {}));
  ToyModule toy;
  const TempDir folder;
  CHECK(refused(toy, {ModelCheckpoint({.dirpath = folder.path, .monitor = "valid_loss"})}));
  // The values that training will log are not known yet.
  plateau.monitor = "train_loss";
  data::DataLoader train(toy_points(4), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {EarlyStopping({.monitor = "train_loss"})};
  Trainer(config).fit(plateau, train, val);
}

TEST_CASE("callbacks/early_stopping_training: without validation it watches training") {
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
  CHECK(early->reason() == EarlyStopping::Reason::threshold);
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
