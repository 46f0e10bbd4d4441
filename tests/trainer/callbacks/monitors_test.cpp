// Callbacks that only observe: the values they log, where, and that weights are unaffected.
#include <algorithm>
#include <cmath>
#include <limits>

#include <levin/trainer/strategy.h>

#include "support/comparison.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Every record that the loggers get.
struct Records : Logger {
  std::vector<LogRecord> all;
  void log_metrics(const LogRecord& record) override { all.push_back(record); }
  void resume(std::int64_t) override {}
  void save() override {}
  std::string log_dir() const override { return {}; }

  /// The values of one name in their order, by step.
  std::vector<std::pair<std::int64_t, double>> of(const std::string& name) const {
    std::vector<std::pair<std::int64_t, double>> out;
    for (const auto& record : all)
      for (const auto& [key, value] : record.values)
        if (key == name) out.emplace_back(record.step, value);
    return out;
  }
  std::vector<std::string> names(const std::string& prefix) const {
    std::vector<std::string> out;
    for (const auto& record : all)
      for (const auto& [key, value] : record.values)
        if (key.starts_with(prefix) && std::ranges::find(out, key) == out.end()) out.push_back(key);
    return out;
  }
};

using Weights = std::vector<std::vector<float>>;

/// Four batches an epoch, each of four samples.
template <class M>
std::shared_ptr<Records> fit(M& model, std::vector<CallbackPtr> callbacks, TrainerConfig config = {}) {
  const auto records = std::make_shared<Records>();
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  if (!config.max_epochs) config.max_epochs = 2;
  if (config.log_every_n_steps == 50) config.log_every_n_steps = 1;
  config = quiet(config);
  config.callbacks = std::move(callbacks);
  config.loggers = {records};
  Trainer(config).fit(model, train, val);
  return records;
}

struct Groups : ToyModule {
  Optimizers configure_optimizers() override {
    optim::SGD sgd({{.params = fc1.parameters(), .settings = {{"lr", 0.1}}}}, {.lr = 0.5, .momentum = 0.9});
    std::vector<Parameter> rest;
    for (const Parameter& p : fc2.parameters()) rest.emplace_back("fc2." + p.name, p);
    sgd.add_param_group({.params = rest, .settings = {{"weight_decay", 0.01}}});
    return sgd;
  }
};

}  // namespace

TEST_CASE("callbacks/learning_rate_monitor: rates by the scheduler's interval and under Lightning's names") {
  manual_seed(1);
  ToyModule by_step({.interval = Interval::step});  // 0.02, times 0.7 each three steps
  const auto steps = fit(by_step, {LearningRateMonitor({.log_momentum = true, .log_weight_decay = true})});
  const auto rates = steps->of("lr-AdamW");
  REQUIRE(rates.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(rates[i].first == static_cast<std::int64_t>(i) + 1);
    CHECK(rates[i].second == approx(0.02 * std::pow(0.7, static_cast<double>(i / 3)), {.relative = 1e-12}));
  }
  CHECK(steps->of("lr-AdamW-momentum")[0].second == 0.9);
  CHECK(steps->of("lr-AdamW-weight_decay")[0].second == 0.01);
  ToyModule by_epoch({.interval = Interval::epoch});
  CHECK(fit(by_epoch, {LearningRateMonitor()})->of("lr-AdamW").size() == 2);
  ToyModule forced({.interval = Interval::step});
  const auto epochs = fit(forced, {LearningRateMonitor({.logging_interval = Interval::epoch, .log_key_prefix = "a/"})});
  REQUIRE(epochs->of("a/lr-AdamW").size() == 2);
  CHECK(epochs->of("a/lr-AdamW")[1].second == approx(0.02 * 0.7, {.relative = 1e-12}));  // after four steps
  Groups groups;
  const auto two = fit(groups, {LearningRateMonitor()}, {.log_every_n_steps = 4});
  CHECK(two->names("lr-") == std::vector<std::string>{"lr-SGD/pg1", "lr-SGD/pg2"});
  CHECK(two->of("lr-SGD/pg1") == std::vector<std::pair<std::int64_t, double>>{{4, 0.1}, {8, 0.1}});
  CHECK(two->of("lr-SGD/pg2")[0].second == 0.5);
}

TEST_CASE("callbacks/gradient_norm_monitor: the norm before clipping, of all and of each") {
  manual_seed(1);
  struct Kept : ToyModule {
    std::vector<double> norms, largest;
    void on_before_optimizer_step(optim::Optimizer& o) override {
      double sum = 0;
      Largest most;
      for (const Parameter& p : o.parameters())
        for (const double g : p.grad().to(kFloat64).to_vector<double>()) {
          sum += g * g;
          most.add(std::abs(g));
        }
      norms.push_back(std::sqrt(sum));
      largest.push_back(most.value());
    }
  } model;
  const auto records = fit(model,
                           {GradientNormMonitor({.per_parameter = true}),
                            GradientNormMonitor({.norm_type = std::numeric_limits<double>::infinity()})},
                           {.accumulate_grad_batches = 2, .gradient_clip_val = 1e-3});
  const auto total = records->of("grad_2.0_norm_total"), most = records->of("grad_inf_norm_total");
  REQUIRE(total.size() == 4);
  REQUIRE(most.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(total[i].second == approx(model.norms[i], {.relative = 1e-6}));
    CHECK(most[i].second == approx(model.largest[i], {.relative = 1e-6}));
  }
  CHECK(records->names("grad_2.0_norm/") ==
        std::vector<std::string>{"grad_2.0_norm/fc1.weight", "grad_2.0_norm/fc1.bias", "grad_2.0_norm/fc2.weight",
                                 "grad_2.0_norm/fc2.bias"});
  CHECK_THROWS_AS(GradientNormMonitor({.norm_type = 0}), UsageError);
}

TEST_CASE("callbacks/throughput_monitor: rates over the window, without the time of validation") {
  manual_seed(1);
  double now = 50;
  ToyModule model;
  const auto records =
      fit(model,
          {LambdaCallback({.on_train_batch_start = [&](RunContext&, const Batch&, int i) { now += i == 0 ? 4 : 0.5; },
                           .on_validation_batch_start = [&](RunContext&, const Batch&, int) { now += 100; }}),
           ThroughputMonitor({.length_fn = [](const Batch& b) { return 3 * b.size(); },
                              .window = 2,
                              .flops_fn = [](const Batch&) { return 1000.0; },
                              .available_flops = 4000,
                              .clock = [&] { return now; }})});
  using Values = std::vector<double>;
  const auto values = [&](const char* name) {
    Values out;
    for (const auto& [step, value] : records->of(name)) out.push_back(value);
    return out;
  };
  CHECK(values("train/time") == Values{4, 4.5, 5, 5.5, 9.5, 10, 10.5, 11});
  CHECK(values("train/batches") == Values{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(values("train/samples").back() == 32);
  CHECK(values("train/lengths").back() == 96);
  CHECK(values("train/device/batches_per_sec") == Values{0.25, 2 / 4.5, 2, 2, 2 / 4.5, 2 / 4.5, 2, 2});
  CHECK(values("train/device/samples_per_sec").back() == 8);
  CHECK(values("train/device/items_per_sec").back() == 24);
  CHECK(values("train/device/flops_per_sec").back() == 2000);
  CHECK(values("train/device/mfu").back() == 0.5);
  CHECK_THROWS_AS(ThroughputMonitor({.window = 0}), UsageError);
  CHECK_THROWS_AS(ThroughputMonitor({.available_flops = -1}), UsageError);
}

TEST_CASE("callbacks/device_stats_monitor: memory and load at the start and the end of a batch") {
  manual_seed(1);
  ToyModule model;
  const auto records = fit(model, {DeviceStatsMonitor()}, {.log_every_n_steps = 2});
  for (const std::string hook : {"on_train_batch_start", "on_train_batch_end"}) {
    const auto used = records->of("DeviceStatsMonitor." + hook + "/allocated_bytes");
    REQUIRE(used.size() == 4);
    CHECK(used[0].second > 0);
    CHECK(records->of("DeviceStatsMonitor." + hook + "/peak_allocated_bytes")[0].second >= used[0].second);
    CHECK(records->of("DeviceStatsMonitor." + hook + "/process_rss_bytes")[0].second > 1e6);
    const double memory = records->of("DeviceStatsMonitor." + hook + "/cpu_vm_percent")[0].second;
    CHECK(memory > 0);
    CHECK(memory < 100);
  }
  const auto few = fit(model, {DeviceStatsMonitor({.filter_keys = {"peak", "swap"}})});
  CHECK(few->names("DeviceStatsMonitor.").size() == 4);
  const auto none = fit(model, {DeviceStatsMonitor({.cpu_stats = false})});
  CHECK(none->names("DeviceStatsMonitor.on_train_batch_end").size() == 2);
}

TEST_CASE("callbacks/monitors_change_nothing: the weights are those of a run without them") {
  const auto weights = [](std::vector<CallbackPtr> callbacks) {
    manual_seed(4);
    ToyModule model;
    fit(model, std::move(callbacks));
    return values_of(model);
  };
  CHECK(weights({}) ==
        weights({LearningRateMonitor(), GradientNormMonitor({.per_parameter = true}), ThroughputMonitor(),
                 DeviceStatsMonitor(), Timer("01:00:00:00"), SpikeDetection(), LambdaCallback({})}));
}

TEST_CASE("callbacks/lambda_callback: functions run at their hooks") {
  manual_seed(1);
  std::vector<std::string> calls;
  const auto note = [&](const char* name) { return [&calls, name](RunContext&) { calls.emplace_back(name); }; };
  ToyModule model;
  LambdaHooks hooks{.setup = note("setup"), .on_fit_start = note("fit_start"), .on_train_end = note("train_end")};
  hooks.on_train_batch_end = [&](RunContext&, const StepOutput& out, const Batch& b, int i) {
    CHECK_FALSE(out.empty());
    calls.push_back(std::to_string(i + b.size()));
  };
  hooks.on_before_backward = [](RunContext&, const Tensor& loss) { CHECK(loss.requires_grad()); };
  hooks.on_validation_end = note("validation_end");
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1, .num_sanity_val_steps = 0});
  config.callbacks = {LambdaCallback(hooks)};
  Trainer(config).fit(model, train, val);
  CHECK(calls == std::vector<std::string>{"setup", "fit_start", "4", "5", "6", "7", "validation_end", "train_end"});
}

TEST_CASE("callbacks/gradient_accumulation_scheduler: steps by epoch") {
  manual_seed(1);
  using Schedule = std::map<std::int64_t, std::int64_t>;
  GradientAccumulationScheduler schedule({{1, 2}, {3, 4}});
  CHECK(schedule.accumulate_at(0) == 1);
  CHECK(schedule.accumulate_at(2) == 2);
  CHECK(schedule.accumulate_at(9) == 4);
  ToyModule model;
  std::vector<std::int64_t> steps;
  fit(model,
      {schedule,
       LambdaCallback({.on_train_epoch_end = [&](RunContext& run) { steps.push_back(run.state.global_step); }})},
      {.max_epochs = 5});
  CHECK(steps == std::vector<std::int64_t>{4, 6, 8, 9, 10});
  CHECK_THROWS_AS(GradientAccumulationScheduler(Schedule{}), UsageError);
  CHECK_THROWS_AS(GradientAccumulationScheduler(Schedule{{-1, 2}}), UsageError);
  CHECK_THROWS_AS(GradientAccumulationScheduler(Schedule{{0, 0}}), UsageError);
  CHECK_THROWS_AS(fit(model, {schedule}, {.accumulate_grad_batches = 2}), UsageError);
}
