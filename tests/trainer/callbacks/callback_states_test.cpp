// The state of callbacks, value by value; several callbacks of one kind; several optimizers under one monitor.
#include <levin/trainer/callbacks/finetuning.h>
#include <levin/trainer/optimizers.h>
#include <levin/trainer/train_state.h>

#include <cmath>

#include "trainer/callbacks/scripted.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Three optimizers of two kinds, stepped by hand.
struct ThreeOptimizers : ToyModule {
  ThreeOptimizers() : ToyModule({.dropout = 0}) { automatic_optimization = false; }
  StepOutput training_step(const Batch& b, int) override {
    auto [first, second, third] = optimizers<3>();
    for (auto* o : {&first, &second, &third}) o->zero_grad();
    manual_backward(cross_entropy((*this)(b[0]), b[1]));
    for (auto* o : {&first, &second, &third}) o->step();
    return {};
  }
  Optimizers configure_optimizers() override {
    const auto of = [](const char* name, const Tensor& t) { return std::vector<Parameter>{{name, t}}; };
    std::vector<Parameter> rest;
    for (const Parameter& p : fc2.parameters()) rest.emplace_back("fc2." + p.name, p);
    return Optimizers(optim::SGD(of("fc1.weight", fc1.weight), {.lr = 0.1}))
        .add(optim::AdamW(of("fc1.bias", fc1.bias), {.lr = 0.2}))
        .add(optim::SGD(rest, {.lr = 0.3}));
  }
};

struct Records : Logger {
  std::vector<LogRecord> all;
  void log_metrics(const LogRecord& record) override { all.push_back(record); }
  void resume(std::int64_t) override {}
  void save() override {}
  std::string log_dir() const override { return {}; }

  /// Returns the last value of a name, or NaN.
  double last(const std::string& name) const {
    double found = std::nan("");
    for (const LogRecord& record : all)
      for (const auto& [key, value] : record.values)
        if (key == name) found = value;
    return found;
  }
};

void fit(LevinModule& model, std::vector<CallbackPtr> callbacks, TrainerConfig config = {},
         const std::shared_ptr<Records>& records = nullptr, const std::string& ckpt = {}) {
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  if (!config.max_epochs) config.max_epochs = 1;
  config.log_every_n_steps = 1;
  config.num_sanity_val_steps = 0;
  config = quiet(config);
  config.callbacks = std::move(callbacks);
  if (records) config.loggers = {records};
  Trainer(config).fit(model, train, val, ckpt);
}

/// Checks that another callback that loads this one's state has it, and that the state is not empty.
void check_state_goes_over(const Callback& from, Callback&& to) {
  const StateMap before = to.state();
  CHECK_FALSE(before == from.state());
  to.load_state(from.state());
  CHECK(to.state() == from.state());
}

}  // namespace

TEST_CASE("callbacks/states: every value of a callback's state is restored in another one") {
  manual_seed(1);
  double now = 10;
  const auto clock = [&] { return now; };
  const LambdaCallback time({.on_train_batch_start = [&](RunContext&, const Batch&, int) { now += 2; },
                             .on_validation_batch_start = [&](RunContext&, const Batch&, int) { now += 3; }});
  const auto timer = std::make_shared<Timer>(
      TimerOptions{.duration = std::chrono::hours(1), .verbose = false, .clock = clock});
  const ThroughputMonitorOptions rates{.length_fn = [](const Batch& b) { return 3 * b.size(); },
                                       .flops_fn = [](const Batch&) { return 1000.0; },
                                       .clock = clock};
  const auto throughput = std::make_shared<ThroughputMonitor>(rates);
  const auto spikes = std::make_shared<SpikeDetection>(SpikeDetectionOptions{.window = 3, .rtol = 100.0});
  const auto early = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "score", .patience = 9});
  ScoreScript model({1, 2});
  fit(model, {timer, throughput, spikes, early, time}, {.max_epochs = 3});
  CHECK(timer->time_elapsed(Split::validation) == 9);
  CHECK(early->wait_count() == 2);
  check_state_goes_over(*timer, Timer({.duration = std::chrono::hours(1), .verbose = false, .clock = clock}));
  check_state_goes_over(*throughput, ThroughputMonitor(rates));
  check_state_goes_over(*spikes, SpikeDetection({.window = 3, .rtol = 100.0}));
  check_state_goes_over(*early, EarlyStopping({.monitor = "score", .patience = 9}));
}

TEST_CASE("callbacks/states: a resumed early stopping continues its wait") {
  const TempDir f;
  const auto run = [&](std::int64_t epochs, const std::string& ckpt) {
    manual_seed(1);
    ScoreScript model({3});
    const auto early = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "score", .patience = 3});
    fit(model, {early, ModelCheckpoint({.dirpath = f.path})}, {.max_epochs = epochs}, nullptr, ckpt);
    return early->stopped_epoch();
  };
  run(3, "");  // the first value is the best, two have been no better
  CHECK(run(9, (f.path / "last").string()) == 3);
}

TEST_CASE("callbacks/early_stopping_delta: an improvement is one by more than min_delta, in both directions") {
  const auto stops = [](Mode mode, const std::vector<double>& values) {
    manual_seed(1);
    ScoreScript model(values);
    const auto early = std::make_shared<EarlyStopping>(
        EarlyStoppingOptions{.monitor = "score", .min_delta = 0.5, .patience = 2, .mode = mode});
    fit(model, {early}, {.max_epochs = 6});
    return early->stopped_epoch();
  };
  CHECK(stops(Mode::max, {1, 1.25, 1.4, 9, 9, 9}) == 2);
  CHECK(stops(Mode::max, {1, 1.25, 1.75, 1.9, 2.0, 9}) == 4);
  CHECK(stops(Mode::min, {9, 8.75, 8.6, 1, 1, 1}) == 2);
  CHECK(stops(Mode::min, {9, 8.75, 8.25, 8.1, 8.0, 1}) == 4);
}

TEST_CASE("callbacks/states: checkpoint callbacks of one monitor go on with their own, each in its folder") {
  const TempDir f;
  const auto run = [&](std::int64_t epochs, const std::string& ckpt) {
    manual_seed(1);
    ScoreScript model({0.5, 0.2, 0.7, 0.4});
    std::vector<std::shared_ptr<ModelCheckpoint>> policies;
    for (const int k : {1, 2, 3})
      policies.push_back(std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{
          .dirpath = f.path / std::to_string(k), .monitor = "score", .save_top_k = k}));
    std::vector<std::size_t> known;
    const LambdaCallback look({.on_train_start = [&](RunContext&) {
      for (const auto& p : policies) known.push_back(p->best_k_models().size());
    }});
    fit(model, {policies[0], policies[1], policies[2], look}, {.max_epochs = epochs}, nullptr, ckpt);
    for (const auto& p : policies) CHECK(std::filesystem::path(p->best_model_path()).parent_path() == p->directory());
    return known;
  };
  CHECK(run(3, "") == std::vector<std::size_t>{0, 0, 0});
  // The last one's checkpoint contains the checkpoints kept by all of them.
  CHECK(run(4, (f.path / "3/last").string()) == std::vector<std::size_t>{1, 2, 3});
}

TEST_CASE("callbacks/states: a checkpoint callback restores its score and saves that wait for their metric") {
  const TempDir f;
  manual_seed(1);
  ScoreScript model({0.5, 0.2});
  const auto policy = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.dirpath = f.path, .monitor = "score"});
  fit(model, {policy}, {.max_epochs = 2});
  StateMap state = policy->state();
  CHECK(state.get<double>("current_score") == 0.2);
  state.set("rule0/deferred", std::int64_t{1});
  state.set("current_score", 0.75);
  policy->load_state(state);
  CHECK(policy->state() == state);
  CHECK(policy->current_score() == 0.75);
}

TEST_CASE("callbacks/several: optimizers are numbered within their kind in logged rates") {
  manual_seed(1);
  ThreeOptimizers model;
  const auto records = std::make_shared<Records>();
  fit(model, {LearningRateMonitor()}, {}, records);
  CHECK(records->last("lr-SGD") == 0.1);
  CHECK(records->last("lr-AdamW") == 0.2);
  CHECK(records->last("lr-SGD-1") == 0.3);
  CHECK(std::isnan(records->last("lr-AdamW-1")));
}

TEST_CASE("callbacks/several: the gradient norm covers all optimizers") {
  manual_seed(1);
  struct Kept : ThreeOptimizers {
    double norm = 0;
    void on_before_optimizer_step(optim::Optimizer&) override {
      double sum = 0;
      for (const Parameter& p : parameters())
        for (const double g : p.grad().to(kFloat64).to_vector<double>()) sum += g * g;
      norm = std::sqrt(sum);
    }
  } model;
  const auto records = std::make_shared<Records>();
  fit(model, {GradientNormMonitor({.per_parameter = true})}, {}, records);
  CHECK(std::abs(records->last("grad_2.0_norm_total") - model.norm) <= 1e-6 * model.norm);
  CHECK(records->last("grad_2.0_norm/fc2.weight") > 0);
  CHECK(records->last("grad_2.0_norm/fc1.bias") > 0);
}

TEST_CASE("callbacks/figures: live memory is not the peak") {
  manual_seed(1);
  ToyModule model;
  const auto records = std::make_shared<Records>();
  fit(model,
      {LambdaCallback({.on_train_batch_start = [](RunContext&, const Batch&, int) {
         const Tensor passing = zeros({16 << 20});  // 64 MiB
       }}),
       DeviceStatsMonitor()},
      {}, records);
  const double live = records->last("DeviceStatsMonitor.on_train_batch_end/allocated_bytes");
  const double peak = records->last("DeviceStatsMonitor.on_train_batch_end/peak_allocated_bytes");
  CHECK(peak - live > 32 << 20);
}

TEST_CASE("callbacks/averages: a linear annealing, and statistics whatever the momentum of the layer") {
  struct Net : ToyModule {
    nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 6, nn::BatchNorm2d::Options{.momentum = 0.7});
    Net() : ToyModule({.dropout = 0}) {}
    Tensor forward(const Tensor& x) override {
      return ToyModule::forward(norm(x.reshape({x.size(0), 6, 1, 1})).flatten(1));
    }
  };
  manual_seed(1);
  Net model;
  std::vector<double> rates;
  const LambdaCallback look({.on_train_epoch_start = [&](RunContext& run) {
    rates.push_back(run.optimizers->optimizer().param_groups()[0]["lr"]);
  }});
  fit(model,
      {StochasticWeightAveraging({.swa_lrs = {0.25},
                                  .swa_epoch_start = std::int64_t{1},
                                  .annealing_epochs = 4,
                                  .annealing_strategy = optim::Anneal::linear}),
       look},
      {.max_epochs = 5});
  REQUIRE(rates.size() == 5);
  for (std::size_t i = 2; i < 5; ++i)  // in equal steps
    CHECK(std::abs((rates[i] - rates[i - 1]) - (rates[1] - rates[0])) <= 1e-12);
  CHECK(std::abs(rates[4] - 0.25) <= 1e-12);
  const auto x = toy_points(16).tensors()[0].reshape({4, 4, 6}).to(kFloat64);
  const auto means = x.mean({0, 1}).to_vector<double>(), variances = var(x, {1}, 1).mean({0}).to_vector<double>();
  const auto mean = model.norm.running_mean.to_vector<double>(), variance = model.norm.running_var.to_vector<double>();
  for (std::size_t c = 0; c < 6; ++c) {
    CHECK(std::abs(mean[c] - means[c]) <= 1e-5 * (1 + std::abs(means[c])));
    CHECK(std::abs(variance[c] - variances[c]) <= 1e-5 * (1 + variances[c]));
  }
}

TEST_CASE("optimizers: the states of three optimizers and their schedulers are restored to the right ones") {
  const Tensor a = zeros({2}).requires_grad_(), b = zeros({2}).requires_grad_(), c = zeros({2}).requires_grad_();
  const auto make_all = [&] {
    const auto of = [](const char* name, const Tensor& t) { return std::vector<Parameter>{{name, t}}; };
    const auto schedule = [](auto& optimizer) { return optim::StepLR(optimizer, 2, 0.5); };
    return Optimizers(optim::SGD(of("a", a), {.lr = 1, .momentum = 0.5}))
        .schedule(schedule)
        .add(optim::SGD(of("b", b), {.lr = 2, .momentum = 0.5}))
        .schedule(schedule)
        .add(optim::SGD(of("c", c), {.lr = 3, .momentum = 0.5}))
        .schedule(schedule);
  };
  const Optimizers saved = make_all();
  double gradient = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t n = 0; n <= i; ++n) {
      for (const Tensor& t : saved.optimizer(i).parameters()) t.set_grad(full({2}, gradient++));
      saved.optimizer(i).step();
      const_cast<Optimizers&>(saved).step_scheduler({}, i);
    }
  }
  Optimizers loaded = make_all();
  loaded.load_optimizer_state(saved.optimizer_state());
  loaded.load_scheduler_state(saved.scheduler_state());
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(values_of(loaded.optimizer(i).state_dict()) == values_of(saved.optimizer(i).state_dict()));
    CHECK(loaded.scheduler(i)->last_epoch() == static_cast<std::int64_t>(i) + 1);
  }
}

TEST_CASE("a run's state has all of its counters") {
  TrainState s;
  s.epoch = 2;
  s.batch = 3;
  s.total_batches = 5;
  s.global_step = 7;
  s.optimizer_steps = {11, 13};
  s.samples = 17;
  s.micro = 19;
  s.window_nominal = 23;
  s.window_weight = 29;
  s.eval_loader = 31;
  s.eval_batch = 37;
  s.point = SavePoint::validation_batch_end;
  s.epoch_complete = true;
  const TrainState t = TrainState::from_map(s.to_map());
  CHECK(t.to_map() == s.to_map());
  CHECK(t.epoch == 2);
  CHECK(t.total_batches == 5);
  CHECK(t.optimizer_steps == std::vector<std::int64_t>{11, 13});
  CHECK(t.window_weight == 29);
  CHECK(t.point == SavePoint::validation_batch_end);
}
