// Timer with a clock that the test controls.
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Clock {
  std::shared_ptr<double> now = std::make_shared<double>(1000.0);
  std::function<double()> reader() const {
    return [t = now] { return *t; };
  }
};

/// Every training batch takes `seconds`, and every batch of validation one.
LambdaCallback passes_time(const Clock& clock, double seconds) {
  return LambdaCallback(
      {.on_train_batch_start = [t = clock.now, seconds](RunContext&, const Batch&, int) { *t += seconds; },
       .on_validation_batch_start = [t = clock.now](RunContext&, const Batch&, int) { *t += 1; }});
}

struct Fit {
  std::int64_t steps = 0, epochs = 0;
  std::shared_ptr<Timer> timer;
  std::string reason, last;
};

/// Four batches an epoch.
Fit fit(TimerOptions options, TrainerConfig config, double seconds = 10, const std::filesystem::path& dir = {},
        const std::string& ckpt = {}) {
  manual_seed(1);
  const Clock clock;
  options.clock = clock.reader();
  const auto timer = std::make_shared<Timer>(options);
  ToyModule model;
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  config = quiet(config);
  config.num_sanity_val_steps = 0;
  config.callbacks = {passes_time(clock, seconds), timer};
  if (!dir.empty()) config.callbacks.push_back(ModelCheckpoint({.dirpath = dir, .every_n_train_steps = 1}));
  Trainer trainer(config);
  trainer.fit(model, train, val, ckpt);
  return {trainer.global_step(), trainer.current_epoch(), timer, trainer.stop_token().reason(),
          trainer.checkpoint_path("last")};
}

}  // namespace

TEST_CASE("timer/parse") {
  CHECK(Timer("00:00:00:00").time_remaining() == 0);
  CHECK(Timer("00:00:01:30").time_remaining() == 90);
  CHECK(Timer("00:12:00:00").time_remaining() == 12 * 3600);
  CHECK(Timer("02:01:00:05").time_remaining() == 2 * 86400 + 3605);
  CHECK(Timer("100:00:00:00").time_remaining() == 100 * 86400);
  CHECK(Timer(std::chrono::minutes(2)).time_remaining() == 120);
  CHECK_FALSE(Timer().time_remaining().has_value());
  for (const char* wrong : {"", "12", "01:00:00", "00:24:00:00", "00:00:60:00", "00:00:00:60", "0a:00:00:00",
                            "-1:00:00:00", "00:00:00:00:00", "00:00:00:1.5", "00:00:00:10 "})
    CHECK_MESSAGE(contains(message_of<UsageError>([&] { Timer{wrong}; }), "DD:HH:MM:SS"), wrong);
}

TEST_CASE("timer/stops_within_one_batch") {
  const Fit in_third = fit({.duration = std::chrono::seconds(25), .verbose = false}, {.max_epochs = 9});
  CHECK(in_third.steps == 3);
  CHECK(contains(in_third.reason, "time limit of 00:00:00:25 is reached after 30.0 s"));
  CHECK(in_third.timer->time_remaining() == -5);
  // Validation counts as training's time too, and is told apart.
  const Fit later = fit({.duration = std::chrono::seconds(61), .verbose = false}, {.max_epochs = 9});
  CHECK(later.steps == 6);
  CHECK(later.timer->time_elapsed() == 62);
  CHECK(later.timer->time_elapsed(Split::validation) == 2);
  CHECK(later.timer->time_elapsed(Split::test) == 0);
  const Fit by_epoch =
      fit({.duration = std::chrono::seconds(25), .interval = Interval::epoch, .verbose = false}, {.max_epochs = 9});
  CHECK(by_epoch.steps == 4);
  const Fit least = fit({.duration = std::chrono::seconds(25), .verbose = false}, {.max_epochs = 9, .min_steps = 7});
  CHECK(least.steps == 7);
  CHECK(fit({}, {.max_epochs = 2}).steps == 8);
  CHECK_THROWS_AS(Timer(std::chrono::seconds(-1)), UsageError);
}

TEST_CASE("timer/resume_continues") {
  const TempDir folder;
  const Fit first = fit({.duration = std::chrono::seconds(25)}, {.max_epochs = 9}, 10, folder.path);
  CHECK(first.steps == 3);
  // 30 s are used: with 55 s there are three more batches, the fourth of which ends the epoch with two seconds more.
  const Fit second =
      fit({.duration = std::chrono::seconds(55), .verbose = false}, {.max_epochs = 9}, 10, {}, first.last);
  CHECK(second.steps == 6);
  CHECK(second.timer->time_elapsed() == 62);
  const Fit none_left =
      fit({.duration = std::chrono::seconds(25), .verbose = false}, {.max_epochs = 9}, 10, {}, first.last);
  CHECK(none_left.steps == 3);
}

TEST_CASE("timer/max_time: a Trainer's own option, by the machine's clock") {
  CHECK(fit({}, {.max_epochs = 2, .max_time = "00:00:00:00"}).steps == 0);
  CHECK(contains(fit({}, {.max_epochs = 2, .max_time = "00:00:00:00"}).reason, "the time limit of 00:00:00:00"));
  CHECK(fit({}, {.max_epochs = 2, .max_time = std::chrono::hours(10)}).steps == 8);
}
