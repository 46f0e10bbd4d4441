#pragma once
// One training step: the only place that knows its order. It works without a Trainer.

#include <levin/trainer/module.h>
#include <levin/trainer/precision.h>
#include <levin/trainer/strategy.h>

namespace levin {

/// Moments within a step. The Trainer forwards them to callbacks and module.
struct StepHooks {
  virtual ~StepHooks() = default;
  virtual void on_before_zero_grad() {}
  virtual void on_before_backward(const Tensor&) {}
  virtual void on_after_backward() {}
  virtual void on_before_optimizer_step() {}
};

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
class StepRunner {
 public:
  StepRunner(LevinModule& module, Optimizers& optimizers, Strategy& strategy, Precision& precision, StepHooks& hooks,
             StepOptions options);

  /// Runs one batch and closes the window after its last one, or after `last` of the epoch.
  StepOutput run(const Batch& batch, int index, bool last, TrainState& state);

  /// Steps an epoch's scheduler after epoch number `epoch` (from 0). Plateau schedulers step apart from the others,
  /// since they wait for the validation's `metric`.
  void step_epoch_scheduler(std::int64_t epoch, bool plateau, std::optional<double> metric);

  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  void backward(const StepOutput& out, std::int64_t samples, bool closes, TrainState& state);
  void close_window(TrainState& state);
  void correct_gradients(double factor);
  void step_scheduler(std::int64_t count, std::optional<double> metric);

  LevinModule& module_;
  Optimizers& optimizers_;
  Strategy& strategy_;
  Precision& precision_;
  StepHooks& hooks_;
  StepOptions options_;
  std::vector<Parameter> parameters_;  // of the optimizer
};

}  // namespace levin
