// The tuner finds a batch size that fits and a rate that learns, and leaves no trace.
#include <levin/core/allocator.h>

#include <cmath>

#include "support/comparison.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Runs out of memory above a batch size, and notes the sizes that it saw.
struct Limited : ToyModule {
  explicit Limited(std::int64_t most_) : most(most_) {}
  StepOutput training_step(const Batch& b, int i) override {
    if (seen.empty() || seen.back() != b.size()) seen.push_back(b.size());
    if (b.size() > most) throw OutOfMemory("[cpu] out of memory");
    return ToyModule::training_step(b, i);
  }
  std::int64_t most;
  std::vector<std::int64_t> seen;
};

/// Everything that a trial could change.
struct Trace {
  explicit Trace(const LevinModule& m, const data::DataLoader& loader)
      : weights(values_of(m)),
        random(default_generator().state().offset),
        place(loader.state()),
        dtype(m.parameters()[0].dtype()),
        training(m.is_training()) {
    for (const auto& [name, p] : m.named_parameters()) has_grad.push_back(p.grad().defined());
  }
  bool operator==(const Trace& o) const {
    return weights == o.weights && random == o.random && place == o.place && dtype == o.dtype &&
           training == o.training && has_grad == o.has_grad;
  }
  std::vector<std::vector<float>> weights;
  std::uint64_t random;
  data::LoaderState place;
  DType dtype;
  bool training;
  std::vector<bool> has_grad;
};

TrainerConfig on_cpu(const std::string& precision = "32-true") {
  return quiet({.precision = precision, .accelerator = "cpu"});
}

}  // namespace

TEST_CASE("tuner/finds_limit") {
  // Real memory: the cap lets batches of about 4,000 rows through the hidden layer of 4,096.
  struct Wide : LevinModule {
    nn::Linear& fc = add<nn::Linear>("fc", 6, 512);
    StepOutput training_step(const Batch& b, int) override { return square(fc(b[0])).mean(); }
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.01}); }
  } model;
  data::DataLoader loader(toy_points(8192), {.batch_size = 1});
  cpu_allocator::empty_cache();
  const auto before = cpu_allocator::stats().allocated;
  cpu_allocator::set_cap(before + (std::size_t{8} << 20));
  const auto size = Tuner(on_cpu()).scale_batch_size(model, loader);
  cpu_allocator::set_cap(0);
  CHECK(size >= 256);
  CHECK(size <= 4096);
  CHECK(loader.options().batch_size == size);
  CHECK(cpu_allocator::stats().allocated <= before + (std::size_t{1} << 16));
}

TEST_CASE("batch sizes double until they do not fit; binsearch refines the result and leaves a margin") {
  const auto find = [](std::int64_t most, const BatchSizeOptions& options, std::int64_t points = 200) {
    Limited model(most);
    data::DataLoader loader(toy_points(points), {.batch_size = 7, .shuffle = true, .drop_last = true});
    const auto size = Tuner(on_cpu()).scale_batch_size(model, loader, options);
    CHECK(loader.options().batch_size == size);
    CHECK(loader.options().drop_last);
    return std::pair(size, model.seen);
  };
  using Sizes = std::vector<std::int64_t>;
  CHECK(find(20, {}) == std::pair(std::int64_t{16}, Sizes{2, 4, 8, 16, 32}));
  CHECK(find(1000, {}) == std::pair(std::int64_t{200}, Sizes{2, 4, 8, 16, 32, 64, 128, 200}));
  CHECK(find(1000, {.max_val = 50}).first == 50);
  CHECK(find(1000, {.max_trials = 3}) == std::pair(std::int64_t{8}, Sizes{2, 4, 8}));
  CHECK(find(1000, {.init_val = 5, .max_val = 20}).second == Sizes{5, 10, 20});
  CHECK(find(27, {.mode = "binsearch", .margin = 0}) ==
        std::pair(std::int64_t{27}, Sizes{2, 4, 8, 16, 32, 24, 28, 26, 27}));
  CHECK(find(100, {.mode = "binsearch"}).first == 95);
  CHECK(find(1000, {.mode = "binsearch"}).first == 200);  // nothing was short of memory: no margin
}

TEST_CASE("the tuner leaves everything as it was") {
  for (const char* precision : {"32-true", "16-mixed", "bf16-true", "16-o2"}) {
    INFO(precision);
    manual_seed(3);
    Limited model(40);
    const Tensor g = ones({12, 6});
    model.fc1.weight.set_grad(g);
    model.drop.eval();
    data::DataLoader loader(toy_points(64), {.batch_size = 8, .shuffle = true, .seed = 2});
    for (auto it = loader.begin(); it.index() < 2;) ++it;
    const Trace before(model, loader);
    const auto config = on_cpu(precision);
    Tuner(config).lr_find(model, loader, {.num_training_steps = 20});
    CHECK(Trace(model, loader) == before);
    CHECK(model.fc1.weight.grad().to_vector<float>() == g.to_vector<float>());
    CHECK_FALSE(model.drop.is_training());
    CHECK(model.is_training());
    Tuner(config).scale_batch_size(model, loader);
    CHECK(values_of(model) == before.weights);
    CHECK(default_generator().state().offset == before.random);
  }
}

TEST_CASE("a trial that throws also restores everything") {
  struct Thrower : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      if (i == 3) throw std::runtime_error("boom");
      return ToyModule::training_step(b, i);
    }
  } model;
  data::DataLoader loader(toy_points(64), {.batch_size = 8});
  const Trace before(model, loader);
  CHECK_THROWS_AS(Tuner(on_cpu()).lr_find(model, loader), std::runtime_error);
  CHECK(Trace(model, loader) == before);
}

TEST_CASE("rates grow from min_lr to max_lr, whatever the module schedules") {
  struct Rates : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      rates.push_back(optimizer->param_groups()[0]["lr"]);
      return ToyModule::training_step(b, i);
    }
    Optimizers configure_optimizers() override {
      Optimizers made = ToyModule::configure_optimizers();
      optimizer = &made.optimizer();
      return made;
    }
    optim::Optimizer* optimizer = nullptr;
  } model;
  data::DataLoader loader(toy_points(24), {.batch_size = 8});
  const auto r = Tuner(on_cpu()).lr_find(
      model, loader, {.min_lr = 1e-4, .max_lr = 1, .num_training_steps = 4, .early_stop_threshold = {}});
  REQUIRE(r.lr.size() == 4);
  CHECK(r.loss.size() == 4);
  CHECK(model.rates == r.lr);
  const double expected[] = {1e-4, 1e-2, 1e-1, 1};
  for (std::size_t i = 0; i < 4; ++i) CHECK(r.lr[i] == approx(expected[i], {.relative = 1e-9}));
  CHECK(r.loss[0] == approx(model.losses[0], {.relative = 1e-9}));
  const double second = (0.98 * 0.02 * model.losses[0] + 0.02 * model.losses[1]) / (1 - 0.98 * 0.98);
  CHECK(r.loss[1] == approx(second, {.relative = 1e-9}));
  const auto linear = Tuner(on_cpu()).lr_find(
      model, loader,
      {.min_lr = 0.1, .max_lr = 0.5, .num_training_steps = 4, .mode = "linear", .early_stop_threshold = {}});
  CHECK(linear.lr[2] == approx(0.4, {.relative = 1e-9}));
}

TEST_CASE("a search ends where the loss explodes") {
  struct Exploding : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      return ToyModule::training_step(b, i).loss() * (i < 10 ? 1.0 : 1e4);
    }
  } model;
  data::DataLoader loader(toy_points(24), {.batch_size = 8});
  CHECK(Tuner(on_cpu()).lr_find(model, loader).lr.size() == 11);
  CHECK(Tuner(on_cpu()).lr_find(model, loader, {.early_stop_threshold = {}}).lr.size() == 100);
}

TEST_CASE("a loss that grows little by little ends a search too") {
  struct Growing : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      return ToyModule::training_step(b, i).loss() * std::pow(1.3, std::max(0, i - 10));
    }
  } model;
  data::DataLoader loader(toy_points(24), {.batch_size = 8});
  const auto steps = Tuner(on_cpu()).lr_find(model, loader, {.max_lr = 1e-6}).lr.size();
  CHECK(steps > 12);
  CHECK(steps < 60);
}

TEST_CASE("the suggestion is where the loss falls fastest") {
  LearningRateResults r;
  for (int i = 0; i < 30; ++i) {
    r.lr.push_back(std::pow(10.0, -6 + 0.2 * i));
    r.loss.push_back(2.0 - 1.0 / (1.0 + std::exp(-(i - 18.0))));  // steepest at 18
  }
  CHECK(r.suggestion() == r.lr[18]);
  r.loss[3] = -50;  // among those that are left out
  CHECK(r.suggestion() == r.lr[18]);
  CHECK(r.suggestion(0, 1) == r.lr[2]);
  r.loss[25] = std::nan("");
  CHECK(r.suggestion() == r.lr[18]);
  CHECK(r.curve().mark == r.lr[18]);
  CHECK(r.curve().log_x);
  CHECK_FALSE(LearningRateResults{.lr = {1, 2}, .loss = {1, 2}}.suggestion().has_value());
}

TEST_CASE("the finders as callbacks: the fit continues with their results") {
  struct Curves : Logger {
    void log_metrics(const LogRecord&) override {}
    void log_curve(const LogCurve& curve) override { curves.push_back(curve); }
    void resume(std::int64_t) override {}
    void save() override {}
    std::string log_dir() const override { return {}; }
    std::vector<LogCurve> curves;
  };
  struct Tuned : Limited {
    Tuned() : Limited(20) {}
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = lr}); }
    double lr = 123;
  } model;
  data::DataLoader loader(toy_points(64), {.batch_size = 2, .shuffle = true, .seed = 1});
  const auto sizes = std::make_shared<BatchSizeFinder>();
  const auto rates = std::make_shared<LearningRateFinder>(LearningRateOptions{.num_training_steps = 40},
                                                          [&](double lr) { model.lr = lr; });
  const auto logger = std::make_shared<Curves>();
  auto config = on_cpu();
  config.max_epochs = 1;
  config.callbacks = {sizes, rates};
  config.loggers = {logger};
  Trainer trainer(config);
  trainer.fit(model, loader);
  CHECK(sizes->optimal_batch_size() == 16);
  CHECK(trainer.global_step() == 4);  // 64 / 16
  CHECK(model.seen.back() == 16);
  CHECK(rates->results().lr.size() > 10);
  CHECK(model.lr == rates->results().suggestion());
  REQUIRE(logger->curves.size() == 1);
  CHECK(logger->curves[0].name == "lr_find");
  CHECK(logger->curves[0].mark == model.lr);
}

TEST_CASE("the tuner refuses invalid arguments") {
  ToyModule model;
  data::DataLoader loader(toy_points(24), {.batch_size = 8});
  const auto sized = [&](const BatchSizeOptions& o) {
    return message_of<UsageError>([&] { Tuner(on_cpu()).scale_batch_size(model, loader, o); });
  };
  const auto found = [&](const LearningRateOptions& o) {
    return message_of<UsageError>([&] { Tuner(on_cpu()).lr_find(model, loader, o); });
  };
  CHECK(contains(sized({.mode = "guess"}), "mode is \"guess\". Choose power or binsearch."));
  CHECK(contains(sized({.init_val = 0}), "init_val is 0. Give 1 or more."));
  CHECK(contains(sized({.margin = 1}), "margin is 1"));
  CHECK(contains(sized({.init_val = 9, .max_val = 8}), "max_val is 8. Give 9 or more."));
  CHECK(contains(found({.min_lr = 0}), "Give 0 < min_lr < max_lr."));
  CHECK(contains(found({.num_training_steps = 1}), "num_training_steps is 1"));
  CHECK(contains(found({.mode = "log"}), "Choose exponential or linear."));
  model.automatic_optimization = false;
  CHECK(contains(found({}), "uses manual optimization"));
  Limited none(1);
  CHECK(contains(message_of<OutOfMemory>([&] { Tuner(on_cpu()).scale_batch_size(none, loader); }),
                 "not even batches of 2 fit"));
}

TEST_CASE("a trial takes the Trainer's accumulation and clipping, and as many steps as are asked for") {
  struct Counted : ToyModule {
    int batches = 0;
    std::vector<double> clips;
    StepOutput training_step(const Batch& b, int i) override {
      ++batches;
      return ToyModule::training_step(b, i);
    }
    void configure_gradient_clipping(optim::Optimizer& o, std::optional<double> value, const std::string& algorithm,
                                     Strategy& strategy) override {
      clips.push_back(value.value_or(-1));
      CHECK(algorithm == "value");
      ToyModule::configure_gradient_clipping(o, value, algorithm, strategy);
    }
  } model;
  data::DataLoader loader(toy_points(64), {.batch_size = 1});
  auto config = on_cpu();
  config.accumulate_grad_batches = 3;
  config.gradient_clip_val = 0.25;
  config.gradient_clip_algorithm = "value";
  Tuner(config).scale_batch_size(model, loader, {.steps_per_trial = 5, .init_val = 4, .max_val = 4});
  CHECK(model.batches == 15);
  CHECK(model.clips == std::vector<double>(5, 0.25));
}

TEST_CASE("a trial restores buffers, and the loader keeps its order") {
  struct Counting : ToyModule {
    const Tensor seen = register_buffer("seen", zeros({1}));
    StepOutput training_step(const Batch& b, int i) override {
      const no_grad guard;
      seen.add_(static_cast<double>(b.size()));
      const enable_grad on;
      return ToyModule::training_step(b, i);
    }
  } model;
  data::DataLoader loader(toy_points(32), {.batch_size = 2, .shuffle = true, .seed = 11});
  Tuner(on_cpu()).lr_find(model, loader, {.num_training_steps = 5});
  CHECK(model.seen.item<float>() == 0);
  const auto size = Tuner(on_cpu()).scale_batch_size(model, loader, {.max_val = 8});
  CHECK(model.seen.item<float>() == 0);
  CHECK(size == 8);
  data::DataLoader plain(toy_points(32), {.batch_size = 8, .shuffle = true, .seed = 11});
  const Batch first = *loader.begin(), wanted = *plain.begin();
  CHECK(first[0].to_vector<float>() == wanted[0].to_vector<float>());
}

TEST_CASE("a search moves the rates of all groups, and ends at a threshold of its own") {
  struct Groups : ToyModule {
    optim::Optimizer* optimizer = nullptr;
    std::vector<double> first, second;
    StepOutput training_step(const Batch& b, int i) override {
      first.push_back(optimizer->param_groups()[0]["lr"]);
      second.push_back(optimizer->param_groups()[1]["lr"]);
      return ToyModule::training_step(b, i).loss() * 0.0 + (i < 10 ? 1.0 : 10.0);
    }
    Optimizers configure_optimizers() override {
      optim::SGD sgd({{.params = fc1.parameters(), .settings = {{"lr", 0.1}}}}, {.lr = 0.5});
      std::vector<Parameter> rest;
      for (const Parameter& p : fc2.parameters()) rest.emplace_back("fc2." + p.name, p);
      sgd.add_param_group({.params = rest});
      Optimizers made = std::move(sgd);
      optimizer = &made.optimizer();
      return made;
    }
  } model;
  data::DataLoader loader(toy_points(24), {.batch_size = 8});
  // The smoothed loss is about 1.9 after eleven steps, of which the last one has a loss of 10.
  const auto r = Tuner(on_cpu()).lr_find(model, loader, {.early_stop_threshold = 1.5});
  CHECK(r.lr.size() == 11);
  CHECK(model.first == r.lr);
  CHECK(model.second == r.lr);
}

TEST_CASE("a suggestion ignores the last points") {
  LearningRateResults r;
  for (int i = 0; i < 30; ++i) {
    r.lr.push_back(i + 1);
    r.loss.push_back(i < 20 ? 2 : 1);
  }
  r.loss.back() = -50;
  CHECK(r.suggestion() == r.lr[19]);
  CHECK(r.suggestion(10, 0) == r.lr[29]);
}
