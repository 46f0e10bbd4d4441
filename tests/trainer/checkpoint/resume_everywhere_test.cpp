// A run of 40 steps that is interrupted at every step, and within every window and validation, and resumed each time:
// with dropout, shuffling, worker threads, loss scaling, a schedule, averaged weights, a timer, metrics.
#include <levin/trainer/checkpoint/checkpoint.h>

#include <csignal>
#include <tuple>

#include "support/small_cases.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

using Record = std::tuple<std::int64_t, std::int64_t, std::string, double>;  // epoch, step, name, value

struct Records : Logger {
  std::vector<Record> all;
  void log_metrics(const LogRecord& r) override {
    for (const auto& [name, value] : r.values) all.emplace_back(r.epoch, r.step, name, value);
  }
  void resume(std::int64_t step) override {
    std::erase_if(all, [&](const Record& r) { return std::get<1>(r) > step; });
  }
  void save() override {}
  std::string log_dir() const override { return {}; }
};

/// Every how many batches a run is interrupted.
int interval() { return small_cases() ? 3 : 1; }

/// How often a loop of `batches` batches is interrupted.
int interruptions_in(int batches) { return (batches + interval() - 1) / interval(); }

/// One signal: in the first batch, of training or of validation, that this process works on, or soon after.
struct InterruptAtOnce : Callback {
  bool done = false;
  void on_train_batch_start(RunContext&, const Batch&, int index) override { interrupt(index); }
  void on_validation_batch_start(RunContext& run, const Batch&, int index) override {
    if (!run.sanity_checking) interrupt(index);
  }
  void interrupt(int index) {
    if (index % interval() == 0 && !std::exchange(done, true)) std::raise(SIGINT);
  }
};

/// The toy, whose validation needs random numbers too, with a metric that gathers over an epoch.
struct Model : ToyModule {
  metrics::Accuracy& train_acc =
      add_metric<metrics::Accuracy>("train_acc", metrics::StatScoresOptions{.num_classes = 3});
  metrics::Accuracy& val_acc = add_metric<metrics::Accuracy>("val_acc", metrics::StatScoresOptions{.num_classes = 3});
  StepOutput training_step(const Batch& b, int i) override {
    train_acc.update((*this)(b[0]), b[1]);
    log("train_acc", train_acc, {.on_step = false, .on_epoch = true});
    return ToyModule::training_step(b, i);
  }
  void validation_step(const Batch& b, int index) override {
    log("val_index", index);
    val_acc.update((*this)(b[0]), b[1]);
    log("val_gathered", val_acc);
    log("val_loss", cross_entropy((*this)(b[0]) + randn({b.size(), 3}), b[1]));
  }
};

/// Every batch takes a second of this clock.
struct Clock : Callback {
  explicit Clock(std::shared_ptr<double> t) : now(std::move(t)) {}
  std::shared_ptr<double> now;
  void on_train_batch_end(RunContext&, const StepOutput&, const Batch&, int) override { *now += 1; }
  void on_validation_batch_end(RunContext&, const Batch&, int) override { *now += 1; }
};

struct Whole {
  std::vector<std::vector<float>> weights;
  std::vector<double> losses;
  std::vector<Record> records;
  std::map<std::string, double> training, validation;
  GeneratorState rng;
  double seconds = 0, validation_seconds = 0;
  std::int64_t steps = 0, optimizer_steps = 0, samples = 0;
  int interruptions = 0;
};

Whole run(const std::filesystem::path& dir, bool interrupt, const TrainerConfig& options) {
  Whole out;
  const auto records = std::make_shared<Records>();
  for (bool more = true; more;) {
    const bool first = out.interruptions == 0;
    manual_seed(first ? 3 : 999);  // the checkpoint overrides the seed
    Model model;
    data::DataLoader train(toy_points(92), {.batch_size = 4, .shuffle = true, .num_workers = 2, .seed = first ? 7 : 8});
    data::DataLoader val(toy_points(10, 9),
                         {.batch_size = 4, .shuffle = true, .num_workers = 2, .seed = first ? 5 : 6});
    auto config = quiet(options);
    config.max_steps = 40;
    config.log_every_n_steps = 1;
    const auto now = std::make_shared<double>(first ? 100.0 : 5.0);
    const auto timer =
        std::make_shared<Timer>(TimerOptions{.duration = "00:01:00:00", .clock = [now] { return *now; }});
    config.callbacks = {Clock(now), timer, EMAWeightAveraging({.decay = 0.9, .update_starting_at_step = 5}),
                        ModelCheckpoint({.dirpath = dir, .save_top_k = 0}),
                        EarlyStopping({.monitor = "val_loss", .patience = 100})};
    if (interrupt) config.callbacks.push_back(InterruptAtOnce());
    config.loggers = {records};
    Trainer trainer(config);
    try {
      trainer.fit(model, train, val, first ? "" : "last");
      more = false;
    } catch (const Interrupted&) {
      ++out.interruptions;
    }
    out.losses.insert(out.losses.end(), model.losses.begin(), model.losses.end());
    if (more) continue;
    out.weights = values_of(model);
    out.training = trainer.metrics().results(Split::train);
    out.validation = trainer.metrics().results(Split::validation);
    out.rng = default_generator().state();
    out.seconds = timer->time_elapsed();
    out.validation_seconds = timer->time_elapsed(Split::validation);
    out.steps = trainer.global_step();
    out.optimizer_steps = trainer.state().optimizer_steps.at(0);
    out.samples = trainer.state().samples;
  }
  out.records = records->all;
  return out;
}

void check_equal(const TrainerConfig& config, int interruptions) {
  const TempDir a, b;
  const Whole whole = run(a.path, false, config), cut = run(b.path, true, config);
  CHECK(cut.interruptions == interruptions);
  CHECK(whole.steps == 40);
  CHECK(whole.records.size() >= 60);
  CHECK(cut.weights == whole.weights);
  CHECK(cut.losses == whole.losses);
  CHECK(cut.records == whole.records);
  CHECK(cut.training == whole.training);
  CHECK(cut.validation == whole.validation);
  CHECK(cut.rng == whole.rng);
  CHECK(whole.seconds > whole.validation_seconds);
  CHECK(cut.seconds == whole.seconds);
  CHECK(cut.validation_seconds == whole.validation_seconds);
  CHECK(cut.steps == whole.steps);
  CHECK(cut.optimizer_steps == whole.optimizer_steps);
  CHECK(cut.samples == whole.samples);
}

}  // namespace

TEST_CASE("40 steps of 3 batches, interrupted after each batch of training and validation: the bits of one run") {
  // 5 epochs of 23 batches, 8 windows each; validations of 3 batches after the 8th and the 16th.
  check_equal(
      {.val_check_interval = 8, .accumulate_grad_batches = 3, .gradient_clip_val = 1.0, .precision = "16-mixed"},
      5 * interruptions_in(23) + 5 * 2 * interruptions_in(3));
}

TEST_CASE("the same with checkpoints written beside training, and validation at the end of the epoch") {
  check_equal({.accumulate_grad_batches = 3, .async_checkpoints = true},
              5 * interruptions_in(23) + 5 * interruptions_in(3));
}
