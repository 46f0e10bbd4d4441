// What the Trainer costs: microseconds a step over the plain loop at several sizes of step, and milliseconds from
// Trainer() to the first step.
// usage: levin_bench_trainer [--rounds N]        prints: name  figure  unit; exit status 1 where a limit is passed

#include <levin/levin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

using namespace levin;
using Clock = std::chrono::steady_clock;

namespace {

constexpr double kMostOverhead = 5;  // us a step
constexpr double kMostStartup = 50;  // ms

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Size {
  const char* name;
  std::int64_t features, width, batch, steps;
};
constexpr Size kSizes[] = {{"1 x 1", 1, 1, 1, 4000},
                           {"mlp 16, batch 4", 16, 16, 4, 2000},
                           {"mlp 64, batch 32", 64, 64, 32, 1000},
                           {"mlp 256, batch 64", 256, 256, 64, 200},
                           {"mlp 512, batch 128", 784, 512, 128, 60}};

/// Two layers and a mean square; the same in both loops.
struct Net : LevinModule {
  explicit Net(const Size& s)
      : fc1(add<nn::Linear>("fc1", s.features, s.width)), fc2(add<nn::Linear>("fc2", s.width, 1)) {}
  nn::Linear& fc1;
  nn::Linear& fc2;
  Clock::time_point first{};

  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
  StepOutput training_step(const Batch& b, int) override {
    if (first == Clock::time_point()) first = Clock::now();
    const Tensor loss = square((*this)(b[0])).mean();
    log("loss", loss);
    return loss;
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 1e-4}); }
};

/// Seconds of the epoch, without what comes before and after its steps.
struct Epoch : Callback {
  explicit Epoch(double& seconds_) : seconds(&seconds_) {}
  void on_train_epoch_start(RunContext&) override { start = Clock::now(); }
  void on_train_epoch_end(RunContext&) override { *seconds = seconds_since(start); }
  double* seconds;
  Clock::time_point start{};
};

data::DataLoader loader_of(const Size& s) {
  return data::DataLoader(data::TensorDataset({zeros({s.batch * s.steps, s.features})}), {.batch_size = s.batch});
}

double raw_step(const Size& s) {
  Net net(s);
  auto loader = loader_of(s);
  optim::SGD optimizer(net.parameters(), {.lr = 1e-4});
  const auto start = Clock::now();
  for (auto& batch : loader) {
    const Tensor loss = square(net(batch[0])).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  return seconds_since(start) / static_cast<double>(s.steps);
}

double trainer_step(const Size& s, double& startup) {
  Net net(s);
  auto loader = loader_of(s);
  double seconds = 0;
  const auto start = Clock::now();
  TrainerConfig config{.max_epochs = 1,
                       .accelerator = "cpu",
                       .enable_checkpointing = false,
                       .enable_progress_bar = false,
                       .enable_model_summary = false,
                       .logger = false};
  config.callbacks = {Epoch(seconds)};
  Trainer(config).fit(net, loader);
  startup = std::min(startup, std::chrono::duration<double>(net.first - start).count());
  return seconds / static_cast<double>(s.steps);
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] {
    std::int64_t rounds = 30;
    CommandLine line("What the Trainer costs over the plain loop.");
    line.add("rounds", rounds, "Runs of each, in turn; the best count", 1);
    if (!line.parse(argc, argv)) return 0;
    set_num_threads(1);  // what is asked for is the loop's time, not the kernels'
    bool fine = true;
    double startup = std::numeric_limits<double>::infinity();
    for (const Size& s : kSizes) {
      double raw = std::numeric_limits<double>::infinity(), with = raw;
      for (std::int64_t i = 0; i < rounds; ++i) {
        raw = std::min(raw, raw_step(s));
        with = std::min(with, trainer_step(s, startup));
      }
      std::printf("%-20s plain %9.2f  Trainer %9.2f  overhead %6.2f us/step\n", s.name, raw * 1e6, with * 1e6,
                  (with - raw) * 1e6);
      std::fflush(stdout);
      fine = fine && (with - raw) * 1e6 < kMostOverhead;
    }
    std::printf("%-20s %.2f ms\n", "startup_ms", startup * 1e3);
    return fine && startup * 1e3 < kMostStartup ? 0 : 1;
  });
}
