// Measures the Trainer's overhead: microseconds per step over a plain loop at several sizes of step, and milliseconds
// from Trainer() to the first step.
// usage: levin_bench_trainer [--rounds N]        prints: name  figure  unit; exit status 1 if a limit is exceeded
// Each round is a process that runs both loops, because memory layout affects the cache behaviour of a step more than
// the Trainer does. A step is paired with the same step of the other loop in the same round, and the median over all
// pairs is reported, because changing clocks and other programs affect both alike.
#include <levin/levin.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "../median.h"

using namespace levin;
using bench::median;
using Clock = std::chrono::steady_clock;

namespace {

constexpr double kMostOverhead = 5;  // us per step
constexpr double kMostStartup = 50;  // ms

double us(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

/// Timestamps of a run's begin, of each of its steps, and of its end.
struct Marks {
  std::vector<Clock::time_point> at{};
  void operator()() { at.push_back(Clock::now()); }
  /// Writes the durations between the timestamps, in us.
  void steps(std::span<double> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = us(at[i + 1] - at[i]);
  }
};

struct Size {
  const char* name;
  std::int64_t features, width, batch, steps;
};
constexpr Size kSizes[] = {{"1 x 1", 1, 1, 1, 4000},
                           {"mlp 16, batch 4", 16, 16, 4, 2000},
                           {"mlp 64, batch 32", 64, 64, 32, 1000},
                           {"mlp 256, batch 64", 256, 256, 64, 200},
                           {"mlp 512, batch 128", 784, 512, 128, 60}};

/// Two layers and a mean square error; both loops use it.
struct Net : LevinModule {
  explicit Net(const Size& s)
      : fc1(add<nn::Linear>("fc1", s.features, s.width)), fc2(add<nn::Linear>("fc2", s.width, 1)) {}
  nn::Linear& fc1;
  nn::Linear& fc2;
  Marks marks;

  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
  StepOutput training_step(const Batch& b, int) override {
    marks();
    const Tensor loss = square((*this)(b[0])).mean();
    log("loss", loss);
    return loss;
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 1e-4}); }
};

/// Records the timestamps of the Trainer's run.
struct Epoch : Callback {
  explicit Epoch(Net& net_) : net(&net_) {}
  void on_train_epoch_start(RunContext&) override { net->marks(); }
  void on_train_epoch_end(RunContext&) override { net->marks(); }
  Net* net;
};

data::DataLoader loader_of(const Size& s) {
  return data::DataLoader(data::TensorDataset({zeros({s.batch * s.steps, s.features})}), {.batch_size = s.batch});
}

Marks plain_run(const Size& s) {
  Net net(s);
  auto loader = loader_of(s);
  optim::SGD optimizer(net.parameters(), {.lr = 1e-4});
  net.marks();
  for (auto& batch : loader) {
    net.marks();
    const Tensor loss = square(net(batch[0])).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  net.marks();
  return net.marks;
}

/// Runs the Trainer. `started` gets the milliseconds from Trainer() to the first step.
Marks trainer_run(const Size& s, double& started) {
  Net net(s);
  auto loader = loader_of(s);
  const auto start = Clock::now();
  TrainerConfig config{.max_epochs = 1,
                       .accelerator = "cpu",
                       .enable_checkpointing = false,
                       .enable_progress_bar = false,
                       .enable_model_summary = false,
                       .logger = false};
  config.callbacks = {Epoch(net)};
  Trainer(config).fit(net, loader);
  started = us(net.marks.at[1] - start) / 1e3;
  return net.marks;
}

/// Shared memory in which a round's process returns its results: the start-up time, then each step of the plain loop
/// and of the Trainer, in us.
class Shared {
 public:
  explicit Shared(std::size_t steps) : steps_(steps), bytes_((2 * steps + 1) * sizeof(double)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw IoError("[bench] cannot map memory to share with a child process.");
    values_ = static_cast<double*>(memory);
  }
  ~Shared() { munmap(values_, bytes_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  double& startup() { return values_[0]; }
  std::span<double> plain() { return {values_ + 1, steps_}; }
  std::span<double> trainer() { return {values_ + 1 + steps_, steps_}; }

 private:
  std::size_t steps_, bytes_;
  double* values_;
};

/// Runs the Trainer in the fresh process for its start-up time, then both loops in the order given by `turn`.
void run_both(const Size& s, std::int64_t turn, Shared& figures) {
  trainer_run(s, figures.startup());
  Marks plain, with;
  double ignored = 0;
  if (turn % 2 == 0) plain = plain_run(s);
  with = trainer_run(s, ignored);
  if (turn % 2 == 1) plain = plain_run(s);
  plain.steps(figures.plain());
  with.steps(figures.trainer());
}

void in_own_process(const std::function<void()>& f) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(run_main([&] { return f(), 0; }));
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    throw IoError("[bench] the child process of a round failed.");
}

/// Microseconds per step: medians over all steps of all rounds.
struct Figures {
  double plain, trainer, overhead;
};

Figures measure(const Size& s, std::int64_t rounds, double& startup) {
  Shared figures(static_cast<std::size_t>(s.steps) + 1);
  std::vector<double> plain, trainer, difference;
  for (std::int64_t i = 0; i < rounds; ++i) {
    in_own_process([&] { run_both(s, i, figures); });
    startup = std::min(startup, figures.startup());
    for (std::size_t k = 0; k < figures.plain().size(); ++k) {
      plain.push_back(figures.plain()[k]);
      trainer.push_back(figures.trainer()[k]);
      difference.push_back(trainer.back() - plain.back());
    }
  }
  return {median(plain), median(trainer), median(difference)};
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] {
    std::int64_t rounds = 150;
    CommandLine line("Measures the Trainer's overhead over a plain loop.");
    line.add("rounds", rounds, "Runs of each, in turn", 1);
    if (!line.parse(argc, argv)) return 0;
    set_num_threads(1);  // the loop's time is measured, not the kernels'
    bool fine = true;
    double startup = std::numeric_limits<double>::infinity();
    for (const Size& s : kSizes) {
      const Figures f = measure(s, rounds, startup);
      std::printf("%-20s plain %9.2f  Trainer %9.2f  overhead %6.2f us/step\n", s.name, f.plain, f.trainer, f.overhead);
      std::fflush(stdout);
      fine = fine && f.overhead < kMostOverhead;
    }
    std::printf("%-20s %.2f ms\n", "startup_ms", startup);
    return fine && startup < kMostStartup ? 0 : 1;
  });
}
