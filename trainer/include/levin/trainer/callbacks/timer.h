#pragma once
// How long training takes, and an end to it after a given time.

#include <levin/trainer/callback.h>
#include <levin/trainer/limits.h>
#include <levin/trainer/optimizers.h>

#include <functional>

namespace levin {

struct TimerOptions {
  std::optional<Duration> duration{};  ///< "DD:HH:MM:SS" or a std::chrono duration; without, the timer only measures
  Interval interval = Interval::step;  ///< look at the clock after every batch, or after every epoch
  bool verbose = true;                 ///< say so when the time is over
  std::function<double()> clock{};     ///< seconds that never go back; the machine's steady clock when empty
};

/// Ends training once the time is over: the batch (or epoch) in which that happens is finished, and min_epochs and
/// min_steps are still reached. The time that training took is kept in checkpoints, so a resumed run has what is left.
class Timer : public Callback {
 public:
  explicit Timer(TimerOptions options = {});
  explicit Timer(Duration duration) : Timer(TimerOptions{.duration = duration}) {}

  /// Seconds spent so far: in training with all validations inside of it, in validation, in test.
  double time_elapsed(Split split = Split::train) const;
  /// Seconds of training that are left, below 0 when exceeded; nothing without a duration.
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
    double before = 0;  // seconds of what is over
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
