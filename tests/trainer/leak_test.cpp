// Fits leak nothing and add little overhead to the bare steps.
#include <levin/autograd/graph_watch.h>
#include <levin/core/allocator.h>

#include <chrono>

#include "support/small_cases.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

void fit_once(const std::filesystem::path& dir) {
  ToyModule model;
  data::DataLoader train(toy_points(12), {.batch_size = 4, .shuffle = true, .num_workers = 1}),
      val(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2, .accumulate_grad_batches = 2, .gradient_clip_val = 1.0});
  config.callbacks = {EarlyStopping({.monitor = "val_loss"}),
                      ModelCheckpoint({.dirpath = dir, .monitor = "val_acc", .mode = Mode::max, .every_n_epochs = 2})};
  Trainer trainer(config);
  trainer.fit(model, train, val);
  trainer.test(model,
               {.test = std::make_shared<data::DataLoader>(toy_points(4), data::DataLoaderOptions{.batch_size = 4})});
}

}  // namespace

TEST_CASE("trainer/hundred_runs_no_leak") {
  const TempDir f;
  fit_once(f.path);
  const auto storages = Storage::live_count();
  const auto before = cpu_allocator::stats();
  for (int i = 0; i < (small_cases() ? 20 : 100); ++i) fit_once(f.path);
  const auto after = cpu_allocator::stats();
  CHECK(Storage::live_count() == storages);
  CHECK(after.allocated == before.allocated);
  CHECK(after.live_blocks == before.live_blocks);
}

namespace {

/// Counts after each batch the objects that its step has left.
struct WatchedSteps : ToyModule {
  explicit WatchedSteps(bool keeps_losses) : keeps(keeps_losses) {}
  bool keeps;
  GraphWatch watch;
  std::vector<Tensor> kept;
  std::vector<std::int64_t> operations;  // of graphs that are alive
  std::vector<std::size_t> storages, bytes;
  StepOutput training_step(const Batch& b, int i) override {
    const StepOutput out = ToyModule::training_step(b, i);
    if (keeps) kept.push_back(out.loss());
    return out;
  }
  void on_train_batch_end(const StepOutput&, const Batch&, int) override {
    zero_grad();
    operations.push_back(watch.live());
    storages.push_back(static_cast<std::size_t>(Storage::live_count()));
    bytes.push_back(cpu_allocator::stats().allocated);
  }
};

}  // namespace

TEST_CASE("logged values hold no graph") {
  const auto fitted = [](WatchedSteps& model) {
    data::DataLoader train(toy_points(12), {.batch_size = 4});
    auto config = quiet({.max_epochs = 4});
    config.logger = false;
    Trainer trainer(config);
    trainer.fit(model, train);
    CHECK(trainer.metrics().find("train_loss_epoch").has_value());
    REQUIRE(model.operations.size() == 12);
  };
  WatchedSteps model(/*keeps_losses=*/false);
  fitted(model);
  CHECK_MESSAGE(model.watch.live() == 0, model.watch.oldest());
  CHECK(model.operations == std::vector<std::int64_t>(12, 0));
  // The optimizer's state and the values of an epoch are there after the first batches; more does not come.
  for (std::size_t i = 4; i < 12; ++i) {
    CAPTURE(i);
    CHECK(model.storages[i] == model.storages[3]);
    CHECK(model.bytes[i] == model.bytes[3]);
  }
  // The same counts see a program that keeps its losses.
  WatchedSteps leaking(/*keeps_losses=*/true);
  fitted(leaking);
  for (std::size_t i = 1; i < 12; ++i) {
    CHECK(leaking.operations[i] > leaking.operations[i - 1]);
    CHECK(leaking.storages[i] > leaking.storages[i - 1]);
    CHECK(leaking.bytes[i] > leaking.bytes[i - 1]);
  }
  CHECK(contains(leaking.watch.oldest(), "recorded"));
}

TEST_CASE("a fit that ends with an exception leaks nothing") {
  struct Thrower : Callback {
    void on_after_backward(RunContext&) override { throw std::runtime_error("boom"); }
  };
  const auto fail_once = [] {
    ToyModule model;
    data::DataLoader train(toy_points(12), {.batch_size = 4});
    auto config = quiet({.max_epochs = 1});
    config.callbacks = {Thrower()};
    CHECK_THROWS_AS(Trainer(config).fit(model, train), std::runtime_error);
  };
  fail_once();
  const auto storages = Storage::live_count();
  for (int i = 0; i < 10; ++i) fail_once();
  CHECK(Storage::live_count() == storages);
}

TEST_CASE("a plain loop and the Trainer give the same losses and weights bit for bit") {
  constexpr std::int64_t kEpochs = 3;
  const auto loader = [] { return data::DataLoader(toy_points(30), {.batch_size = 4, .shuffle = true, .seed = 6}); };
  manual_seed(8);
  ToyModule with;
  auto a = loader();
  Trainer(quiet({.max_epochs = kEpochs})).fit(with, a);

  manual_seed(8);
  ToyModule net;
  auto b = loader();
  optim::AdamW opt(net.parameters(), {.lr = 0.02});
  optim::StepLR scheduler(opt, {.step_size = 3, .gamma = 0.7});
  std::vector<double> losses;
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (const auto& [x, y] : b) {
      const Tensor loss = cross_entropy(net(x), y);
      opt.zero_grad();
      loss.backward();
      opt.step();
      scheduler.step();
      losses.push_back(loss.item<double>());
    }
  }
  CHECK(losses == with.losses);
  CHECK(values_of(net) == values_of(with));
}

namespace {

double us_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the time of the smallest training step in us: forward, backward and SGD of a network with one weight and a
/// bias. The Trainer's times are stated in such steps, measured in the same run on the same machine.
double smallest_step() {
  nn::Linear fc(1, 1);
  optim::SGD sgd(fc.parameters(), {.lr = 0.1});
  const Tensor x = ones({1, 1});
  double best = 1e9;
  for (int round = 0; round < 10; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) {
      sgd.zero_grad();
      fc(x).sum().backward();
      sgd.step();
    }
    best = std::min(best, us_since(start) / 200);
  }
  return best;
}

}  // namespace

TEST_CASE("bench/trainer_overhead: the Trainer adds less to a step than the smallest training step takes") {
  struct Nothing : LevinModule {
    nn::Linear& fc = add<nn::Linear>("fc", 1, 1);
    StepOutput training_step(const Batch&, int) override {
      log("loss", 1.0, {.prog_bar = true});
      return {};
    }
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1}); }
  };
  struct Clock : Callback {
    explicit Clock(double& b) : best(&b) {}
    double* best;
    std::chrono::steady_clock::time_point start{};
    void on_train_epoch_start(RunContext&) override { start = std::chrono::steady_clock::now(); }
    void on_train_epoch_end(RunContext& run) override {
      *best = std::min(*best, us_since(start) / static_cast<double>(run.train_batches));
    }
  };
  // The loader's own time is part of a plain loop too, and is taken off.
  const auto walk = [] { return data::DataLoader(data::TensorDataset({zeros({2000, 1})}), {.batch_size = 1}); };
  double plain = 1e9, with = 1e9, smallest = 1e9;
  for (int round = 0; round < 10; ++round) {  // by turns, so that what slows the machine down slows all
    smallest = std::min(smallest, smallest_step());
    auto loader = walk(), again = walk();
    const auto start = std::chrono::steady_clock::now();
    std::int64_t rows = 0;
    for (auto& batch : loader) rows += batch.size();
    plain = std::min(plain, us_since(start) / static_cast<double>(rows));
    Nothing model;
    auto config = quiet({.max_epochs = 1});
    config.callbacks = {EarlyStopping({.monitor = "loss", .patience = 100}), Clock(with)};
    Trainer(config).fit(model, again);
  }
  MESSAGE("us a step: loader ", plain, ", with the Trainer ", with, ", the smallest training step ", smallest);
  CHECK(with > plain);
#if defined(NDEBUG)
  CHECK(with - plain < smallest);
#endif
}

TEST_CASE("a Trainer is ready for its first step in the time of 1,000 of the smallest training steps") {
  struct First : ToyModule {
    std::chrono::steady_clock::time_point at{};
    StepOutput training_step(const Batch& b, int i) override {
      if (i == 0) at = std::chrono::steady_clock::now();
      return ToyModule::training_step(b, i);
    }
  };
  double best = 1e9, smallest = 1e9;  // of ten: what the machine does besides is no part of it
  for (int i = 0; i < 10; ++i) {
    smallest = std::min(smallest, smallest_step());
    const auto start = std::chrono::steady_clock::now();
    First model;
    data::DataLoader train(toy_points(12), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
    Trainer(quiet({.max_epochs = 1})).fit(model, train, val);
    best = std::min(best, std::chrono::duration<double, std::micro>(model.at - start).count());
  }
  MESSAGE("us until the first step: ", best, ", the smallest training step ", smallest);
#if defined(NDEBUG)
  CHECK(best < 1000 * smallest);
#endif
}
