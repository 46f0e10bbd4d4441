#pragma once
// Measures the time of training and stops it after a given duration.

#include <levin/trainer/callback.h>
#include <levin/trainer/config/limits.h>
#include <levin/trainer/optimizers.h>

#include <functional>

namespace levin {

/// Options of Timer.
struct TimerOptions {
  std::optional<Duration> duration{};  ///< "DD:HH:MM:SS" or a std::chrono duration; if absent, the timer only measures
  Interval interval = Interval::step;  ///< check after every batch, or after every epoch
  bool verbose = true;                 ///< log when the time is up
  std::function<double()> clock{};     ///< monotonic seconds; the steady clock if empty
};

/// Stops training when the time is up: the current batch (or epoch) is finished first, and min_epochs and min_steps are
/// still reached. Checkpoints store the elapsed time, so a resumed run gets the remainder.
class Timer : public Callback {
 public:
  /// Throws UsageError for a negative duration.
  explicit Timer(TimerOptions options = {});
  explicit Timer(Duration duration) : Timer(TimerOptions{.duration = duration}) {}

  /// Seconds spent so far in training (including its validations), in validation, or in test.
  double time_elapsed(Split split = Split::train) const;
  /// Seconds of training left, negative if exceeded; empty without a duration.
  std::optional<double> time_remaining() const;

  std::string state_key() const override { return "Timer"; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  void on_fit_start(RunContext& run) override;
  void on_train_start(RunContext& run) override;
  void on_train_end(RunContext& run) override;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& batch, int index) override;
  void on_train_epoch_end(RunContext& run) override;
  void on_validation_start(RunContext& run) override;
  void on_validation_batch_start(RunContext& run, const Batch& batch, int index) override;
  void on_validation_end(RunContext& run) override;
  void on_test_start(RunContext& run) override;
  void on_test_end(RunContext& run) override;
  void teardown(RunContext& run) override;

 private:
  struct Watch {
    double before = 0;  // seconds of finished intervals
    std::optional<double> start{};
  };
  Watch& watch(Split split) { return watches_[static_cast<std::size_t>(split)]; }
  void start(Split split) { watch(split).start = options_.clock(); }
  void stop(Split split);
  void check(RunContext& run);

  TimerOptions options_;
  Watch watches_[3];  // by Split, without predict
};

}  // namespace levin
