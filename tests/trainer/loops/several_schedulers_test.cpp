// Several schedulers of one optimizer, and of several optimizers.
#include "support/comparison.h"
#include "trainer/toy.h"

#include <cmath>
#include <map>

using namespace levin;
using namespace levin::test;

namespace {

/// A warm-up by the step, a decay by the epoch, and a plateau of a value that never improves.
struct Scheduled : ToyModule {
  Optimizers configure_optimizers() override {
    return Optimizers(optim::SGD(parameters(), {.lr = 1.0}))
        .schedule([](auto& o) { return optim::LinearLR(o, {.start_factor = 0.25, .total_iters = 4}); },
                  {.interval = Interval::step, .name = "warmup"})
        .schedule([](auto& o) { return optim::StepLR(o, {.step_size = 1, .gamma = 0.5}); }, {.frequency = 2})
        .schedule([](auto& o) { return optim::ReduceLROnPlateau(o, {.factor = 0.1, .patience = 0}); },
                  {.monitor = "flat"});
  }
  void validation_step(const Batch&, int) override { log("flat", 1.0); }
  void lr_scheduler_step(const SchedulerHandle& scheduler, std::optional<double> metric) override {
    ++steps[scheduler.index()];
    CHECK(metric.has_value() == !scheduler.config().monitor.empty());
    ToyModule::lr_scheduler_step(scheduler, metric);
  }
  std::map<std::size_t, int> steps;
};

struct Rates : Callback {
  explicit Rates(std::vector<double>& r) : rates(&r) {}
  std::vector<double>* rates;
  void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) override {
    rates->push_back(run.learning_rates.at(0));
  }
};

std::vector<double> fit(LevinModule& model, std::vector<CallbackPtr> callbacks = {}, const std::string& ckpt = {}) {
  std::vector<double> out;
  data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  auto config = quiet({.max_epochs = 4});
  config.callbacks = std::move(callbacks);
  config.callbacks.push_back(Rates(out));
  Trainer(config).fit(model, train, val, ckpt);
  return out;
}

}  // namespace

TEST_CASE("three schedulers of one optimizer step at their own times, and their factors multiply") {
  manual_seed(1);
  Scheduled model;
  const std::vector<double> rates = fit(model);
  // After a batch: the warm-up of its step, the decay of every second epoch's last batch, and the plateau, which is
  // stepped at the end of an epoch, after that epoch's last batch.
  const std::vector<double> expected = {0.4375, 0.625, 0.8125, 0.5, 0.05, 0.05, 0.005, 0.0025};
  REQUIRE(rates.size() == expected.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    CAPTURE(i);
    CHECK(rates[i] == approx(expected[i], {.relative = 1e-12}));
  }
  CHECK(model.steps == std::map<std::size_t, int>{{0, 8}, {1, 2}, {2, 4}});
}

TEST_CASE("several schedulers are restored from a checkpoint of every save point") {
  const TempDir folder;
  const auto policy = std::make_shared<SaveAlways>(folder.path);
  manual_seed(1);
  Scheduled model;
  const std::vector<double> rates = fit(model, {policy});
  const auto weights = values_of(model);
  REQUIRE(policy->count > 10);
  for (int i = 0; i < policy->count; ++i) {
    CAPTURE(i);
    manual_seed(9);
    Scheduled again;
    const auto rest = fit(again, {}, (folder.path / std::to_string(i)).string());
    CHECK(values_of(again) == weights);
    CHECK(std::equal(rest.rbegin(), rest.rend(), rates.rbegin()));
  }
}

TEST_CASE("schedulers of two optimizers keep their order and their states") {
  const Tensor a = zeros({2}).requires_grad_(), b = zeros({2}).requires_grad_();
  const auto make_all = [&](bool second = true) {
    const auto of = [](const char* name, const Tensor& t) { return std::vector<Parameter>{{name, t}}; };
    const auto halve = [](auto& o) { return optim::StepLR(o, 1, 0.5); };
    const auto tenth = [](auto& o) { return optim::StepLR(o, 1, 0.1); };
    Optimizers all = Optimizers(optim::SGD(of("a", a), {.lr = 1})).add(optim::SGD(of("b", b), {.lr = 2}));
    all.add_scheduler(1, halve, {.name = "b0"});
    all.add_scheduler(0, halve, {.name = "a0"});
    if (second) all.add_scheduler(0, tenth, {.name = "a1"});
    return all;
  };
  Optimizers saved = make_all();
  REQUIRE(saved.num_schedulers() == 3);
  const char* const names[] = {"a0", "a1", "b0"};
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(saved.config(k).name == names[k]);
    CHECK(saved.optimizer_of(k) == (k < 2 ? 0 : 1));
    for (std::size_t n = 0; n <= k; ++n) saved.step_scheduler({}, k);
  }
  CHECK(saved.optimizer(0).param_groups()[0]["lr"] == approx(0.5 * 0.01, {.relative = 1e-12}));
  CHECK(saved.optimizer(1).param_groups()[0]["lr"] == 0.25);
  Optimizers loaded = make_all();
  loaded.load_scheduler_state(saved.scheduler_state());
  for (std::size_t k = 0; k < 3; ++k) CHECK(loaded.scheduler(k)->last_epoch() == static_cast<std::int64_t>(k) + 1);
  CHECK(contains(message_of<StateError>([&] { make_all().load_scheduler_state(make_all(false).scheduler_state()); }),
                 "holds nothing for scheduler 1 of optimizer 0"));
  saved.set_scheduler(0, [](auto& o) { return optim::StepLR(o, 1, 0.5); });
  CHECK(saved.num_schedulers() == 2);
  CHECK(saved.config(1).name == "b0");
}

TEST_CASE("LearningRateMonitor names the rate of each scheduler") {
  struct Names : Logger {
    std::map<std::string, int> seen;
    void log_metrics(const LogRecord& r) override {
      for (const auto& [name, value] : r.values) ++seen[name];
    }
    void resume(std::int64_t) override {}
    void save() override {}
    std::string log_dir() const override { return {}; }
  };
  struct Unnamed : Scheduled {
    Optimizers configure_optimizers() override {
      const auto halve = [](auto& o) { return optim::StepLR(o, 1, 0.5); };
      return Optimizers(optim::SGD(parameters(), {.lr = 1.0}))
          .schedule(halve, {.interval = Interval::step})
          .schedule(halve, {.name = "decay"})
          .schedule(halve);
    }
  } model;
  const auto names = std::make_shared<Names>();
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2, .log_every_n_steps = 1});
  config.callbacks = {LearningRateMonitor()};
  config.loggers = {names};
  Trainer(config).fit(model, train);
  CHECK(names->seen.at("lr-SGD") == 4);
  CHECK(names->seen.at("decay") == 2);
  CHECK(names->seen.at("lr-SGD-1") == 2);
}

TEST_CASE("lr_schedulers of manual optimization are those of configure_optimizers, by optimizer") {
  struct Manual : ToyModule {
    Manual() { automatic_optimization = false; }
    StepOutput training_step(const Batch& b, int) override {
      auto [first, second, third] = lr_schedulers<3>();
      CHECK(first.config().name == "a");
      CHECK(third.config().name == "c");
      second.step();
      CHECK(contains(message_of<UsageError>([&] { lr_schedulers<2>(); }),
                     "[lr_schedulers] 2 are requested, but configure_optimizers returned 3. Request 3."));
      return cross_entropy((*this)(b[0]), b[1]);
    }
    Optimizers configure_optimizers() override {
      const auto halve = [](auto& o) { return optim::StepLR(o, 1, 0.5); };
      return Optimizers(optim::SGD(fc1.parameters(), {.lr = 1.0}))
          .schedule(halve, {.name = "a"})
          .schedule(halve, {.name = "b"})
          .add(optim::SGD(fc2.parameters(), {.lr = 1.0}))
          .schedule(halve, {.name = "c"});
    }
  } model;
  data::DataLoader train(toy_points(4), {.batch_size = 4});
  Trainer(quiet({.max_epochs = 1})).fit(model, train);
}
