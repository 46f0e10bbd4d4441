#pragma once
// One training step: the only place that knows its order. It works without a Trainer.

#include <levin/kernels/host_read.h>
#include <levin/trainer/manual_optimization.h>
#include <levin/trainer/module.h>

#include <deque>

namespace levin {

struct StepOptions {
  std::int64_t accumulate_grad_batches = 1;
  std::optional<double> gradient_clip_val{};
  std::string gradient_clip_algorithm = "norm";
};

/// A window is `accumulate_grad_batches` batches, fewer at the end of an epoch. For each batch: forward, zero_grad (the
/// first only), backward; then the before-step hook, clipping, the optimizer's step, and the step's scheduler.
///
/// Accumulation equals the big batch for mean losses: a loss counts by its samples (or its own weight) over those of a
/// nominal window, which is k times the first batch; where the window turned out smaller, one factor corrects the
/// gradients before clipping.
///
/// Whether gradients overflowed stays on the device, and the optimizer's step obeys it there; hooks and clipping run in
/// such a window too, as Lightning's do. A skipped window counts as no optimizer step and moves no scheduler. What the
/// host waits for, on a device:
/// - without a scheduler that steps by the step: nothing. optimizer_steps grows when the flags arrive, or by settle().
/// - with one: before a window's step, the flag of the window before, since it decides about the rate. It was sent
/// ahead
///   of that step's own work, so the host waits only where it is a whole window ahead, with all of this window's
///   forward and backward queued: the device never idles for it.
/// - in the first window, and wherever the module's optimizer_step does not call the base: that window's flag.
/// On the CPU everything is known at once.
///
/// A module with automatic_optimization off steps by itself (see ManualOptimization): here is only counted.
class StepRunner {
 public:
  StepRunner(LevinModule& module, Optimizers& optimizers, Strategy& strategy, Precision& precision, StepHooks& hooks,
             StepOptions options);

  /// Runs one batch, which lies on the device, and closes the window after its last one, or after `last` of the epoch.
  StepOutput run(const Batch& batch, int index, bool last, TrainState& state);

  /// Steps an epoch's scheduler after epoch number `epoch` (from 0). Plateau schedulers step apart from the others,
  /// since they wait for the validation's `metric`.
  void step_epoch_scheduler(std::int64_t epoch, bool plateau, std::optional<double> metric);

  /// Waits until it is known of every window whether it was skipped: optimizer_steps and rates are exact then.
  void settle(TrainState& state) { settle(state, /*wait=*/true); }

  /// May change between windows.
  StepOptions& options() { return options_; }
  /// Takes in the parameter groups that the optimizer got meanwhile; done before each step, too.
  void take_parameters();
  /// Null unless the module steps by itself.
  ManualOptimization* manual() const { return manual_.get(); }
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  StepOutput forward(const Batch& batch, int index, const TrainState& state);
  StepOutput run_stages(const Batch& batch, int index, TrainState& state);
  void zero_grad();
  void refuse_no_loss() const;
  StepOutput run_manual(const Batch& batch, int index, TrainState& state);
  void backward(const StepOutput& out, std::int64_t samples, bool closes, TrainState& state);
  struct Window {
    HostRead skipped;
    std::int64_t number;  ///< from 1
  };

  void close_window(TrainState& state);
  void step_window(const Window& window, const Tensor& found_inf);
  void settle(TrainState& state, bool wait);
  bool schedules_steps() const;
  Tensor of_all_ranks(const Tensor& found_inf);
  void correct_gradients(double factor);
  void step_scheduler(std::int64_t count, std::optional<double> metric);

  LevinModule& module_;
  Optimizers& optimizers_;
  Strategy& strategy_;
  Precision& precision_;
  StepHooks& hooks_;
  StepOptions options_;
  std::unique_ptr<ManualOptimization> manual_;
  std::vector<Parameter> parameters_;  // of the optimizer
  std::deque<Window> open_;            // of which it is not yet known whether they were skipped
  bool weighs_ = true;                 // the open window's losses have weights that ranks compare
  bool obeys_ = false;                 // the module's optimizer_step goes through the base, as far as was seen
};

}  // namespace levin
