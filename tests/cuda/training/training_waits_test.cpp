// Counts the host's waits for the device in training steps: none in good ones. Only the emulator can count them.

#include "cuda/caching.h"
#include "cuda/gate.h"
#include "cuda/training/training.h"

#include <levin/autograd/autocast.h>
#include <levin/kernels/cuda.h>
#include <levin/kernels/host_read.h>
#include <levin/optim/grad_scaler.h>

#if LEVIN_TEST_EMULATED
#include <levin/emulator/devices.h>

using namespace levin;
using namespace levin::test;

namespace {

const Device kCuda = cuda(0);

/// A device on which nothing runs before a wait.
struct LazyDevice {
  LazyDevice() : seed(std::exchange(emulator::config().seed, 0)) { cuda::synchronize(0); }
  ~LazyDevice() {
    cuda::synchronize(0);
    emulator::config().seed = seed;
  }
  const Caching cache{};
  decltype(emulator::Config::seed) seed;
};

template <class F>
std::size_t waits_of(const F& f) {
  const std::size_t before = emulator::host_waits();
  f();
  return emulator::host_waits() - before;
}

}  // namespace

TEST_CASE("the emulator counts the host's waits") {
  const Tensor t = ones({3}, {.device = kCuda});
  CHECK(waits_of([&] { t.add_(1); }) == 0);
  CHECK(waits_of([&] { t.to_vector<float>(); }) >= 1);
  CHECK(waits_of([] { cuda::synchronize(0); }) == 1);
  CHECK(waits_of([] { cuda::current_stream(0).query(); }) == 0);
}

TEST_CASE("a number is read from the device without waiting once it has arrived") {
  const LazyDevice lazy;
  const Tensor t = ones({2}, {.device = kCuda});
  std::optional<HostRead> read;
  CHECK(waits_of([&] {
          read.emplace(t.sum());
          CHECK_FALSE(read->ready());
        }) == 0);
  t.fill_(7);  // queued after the read
  CHECK(waits_of([&] { CHECK(read->value() == 2); }) == 1);
  CHECK(waits_of([&] { CHECK((read->ready() && read->value() == 2)); }) == 0);
  CHECK(HostRead(tensor<double>({1.5})).value() == 1.5);
  CHECK(HostRead(tensor({true}).to(kCuda)).value() == 1);
  CHECK_THROWS_WITH_AS(HostRead{t}, doctest::Contains("one number at a time"), ShapeError);
}

TEST_CASE("a loop with GradScaler never waits in good steps") {
  const LazyDevice lazy;
  manual_seed(1);
  PointNet net;
  net.to(kCuda);
  optim::AdamW opt(net.parameters());
  GradScaler scaler;
  const Batch points = soft_points(8).get_batch(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}, Generator(0));
  const Tensor x = points[0].to(kCuda), y = points[1].to(kCuda);
  const auto step = [&] {
    opt.zero_grad();
    Tensor loss;
    {
      const autocast on(kHalf);
      loss = cross_entropy(net(x), y);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(opt);
    optim::clip_grad_norm_(net.parameters(), 1.0);
    scaler.step(opt);
    scaler.update();
  };
  step();  // creates the optimizer's state
  for (int i = 0; i < 25; ++i) CHECK(waits_of(step) == 0);
  CHECK(scaler.get_growth_tracker() == 26);
}

TEST_CASE("steps of a StepRunner never wait, or with a scheduler only for the previous window's flag") {
  const LazyDevice lazy;
  for (const std::string precision : {"16-mixed", "16-o2", "bf16-mixed"}) {
    INFO(precision);
    StepByStep<> plain(precision, kCuda, {.gradient_clip_val = 1.0}, /*scheduled=*/false);
    plain.step();
    for (int i = 0; i < 22; ++i) CHECK(waits_of([&] { plain.step(); }) == 0);
    plain.runner->settle(plain.state);
    CHECK(plain.state.optimizer_steps.at(0) == 23);
    StepByStep<> scheduled(precision, kCuda);
    scheduled.step();  // it has waited for its own flag
    CHECK(waits_of([&] { scheduled.step(); }) == 0);
    const std::size_t wait = precision == "bf16-mixed" ? 0 : 1;
    for (int i = 0; i < 3; ++i) CHECK(waits_of([&] { scheduled.step(); }) == wait);
  }
}

TEST_CASE("the wait for a scheduler leaves the current window's work in the queue") {
  const LazyDevice lazy;
  struct Seen : StepHooks {
    std::size_t left = 0;
    void on_before_optimizer_step(optim::Optimizer&) override { left = emulator::queued_work(); }
  } seen;
  StepByStep<> run("16-mixed", kCuda);
  run.runner =
      std::make_unique<StepRunner>(*run.model, run.optimizers, *run.strategy, *run.precision, seen, StepOptions{});
  for (int i = 0; i < 3; ++i) run.step();
  CHECK(seen.left > 20);  // forward, backward, and the previous step
  run.runner->settle(run.state);
}

TEST_CASE("trainer/no_sync_in_step: a Trainer without a scheduler waits only at its log intervals") {
  const LazyDevice lazy;
  struct Counted : PointNet {
    std::vector<std::size_t> waits;
    std::size_t before = 0;
    bool on_train_batch_start(const Batch&, int) override {
      before = emulator::host_waits();
      return true;
    }
    void on_train_batch_end(const StepOutput&, const Batch&, int) override {
      waits.push_back(emulator::host_waits() - before);
    }
  } model;
  model.scheduled = false;
  data::DataLoader loader(soft_points(80), {.batch_size = 8});
  Trainer trainer(quiet({.max_epochs = 1,
                         .gradient_clip_val = 1.0,
                         .precision = "16-mixed",
                         .accelerator = "cuda",
                         .log_every_n_steps = 4}));
  trainer.fit(model, loader);
  REQUIRE(model.waits.size() == 10);
  for (const int quiet_step : {1, 2, 4, 5, 6, 8}) CHECK(model.waits[static_cast<std::size_t>(quiet_step)] == 0);
  CHECK(model.waits[3] > 0);
  CHECK(trainer.state().optimizer_steps.at(0) == 10);
  CHECK(std::isfinite(trainer.metrics().results(Split::train).at("loss")));
}

#endif
