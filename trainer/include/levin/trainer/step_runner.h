#pragma once
// Runs one training step: the only place that defines its order. Works without a Trainer.

#include <levin/core/owned_ptr.h>
#include <levin/kernels/host_read.h>
#include <levin/trainer/manual_optimization.h>
#include <levin/trainer/module.h>

#include <deque>

namespace levin {

/// Options of a step, as in TrainerConfig.
struct StepOptions {
  std::int64_t accumulate_grad_batches = 1;      ///< batches of a window
  std::optional<double> gradient_clip_val{};     ///< limit of the norm or of each element; empty: no clipping
  std::string gradient_clip_algorithm = "norm";  ///< "norm" or "value"
  /// Replay forward, backward and the optimizer's step: the second batch of each shape in an epoch is captured (see
  /// capture()), further ones replay it, with the bits of steps that are not captured. Hooks run as usual, but the host
  /// code of training_step and what it logs by tensors is that of the capture.
  bool capture = false;
};

class StepCapture;

/// A window is `accumulate_grad_batches` batches, fewer at the end of an epoch. For each batch: forward, zero_grad
/// (first batch only), backward; then the before-step hook, clipping, the optimizer's step, and the per-step scheduler.
///
/// Accumulation equals the big batch for mean losses: a loss is weighted by its samples (or its own weight) over those
/// of a nominal window, which is k times the first batch; if the window turns out smaller, one factor corrects the
/// gradients before clipping.
///
/// The overflow flag of the gradients stays on the device, where the optimizer's step obeys it; hooks and clipping run
/// in a skipped window too, as in Lightning. A skipped window counts as no optimizer step and moves no scheduler. On a
/// device, the host waits:
/// - without a per-step scheduler: never. optimizer_steps grows when the flags arrive, or by settle().
/// - with one: before a window's step, for the flag of the previous window, which determines the rate. The flag was
///   sent before that step's own work, so the host waits only if it is a whole window ahead, with this window's forward
///   and backward queued: the device never idles for it.
/// - in the first window, and wherever the module's optimizer_step does not call the base: for that window's flag.
/// On the CPU everything is known immediately.
///
/// A module with automatic_optimization off steps by itself (see ManualOptimization); the runner then only counts.
class StepRunner {
 public:
  /// All arguments must outlive the runner. Throws UsageError for several optimizers with automatic optimization, and
  /// for combinations of module, strategy and precision that do not work together.
  StepRunner(LevinModule& module, Optimizers& optimizers, Strategy& strategy, PrecisionPlugin& precision,
             StepHooks& hooks, StepOptions options);
  ~StepRunner();

  /// Runs one batch, which is on the device, and closes the window after its last batch, or after `last` of the epoch.
  /// Counts in `state` and returns the detached result of training_step.
  StepOutput run(const Batch& batch, int index, bool last, TrainState& state);

  /// Steps the schedulers of epochs after epoch `epoch` (from 0), without the plateau schedulers.
  void step_epoch_schedulers(std::int64_t epoch) { step_schedulers(Interval::epoch, epoch + 1); }
  /// Steps plateau scheduler k, which waits for the validation's metric.
  void step_plateau_scheduler(std::size_t k, std::int64_t epoch, double metric) {
    step_scheduler(k, epoch + 1, metric);
  }

  /// Waits until it is known for every window whether it was skipped; optimizer_steps and rates are exact afterwards.
  void settle(TrainState& state) { settle(state, /*wait=*/true); }

  /// Called before the first batch of an epoch: forgets what is captured, so that host code of the new epoch counts.
  void begin_epoch();

  /// Options that may change between windows.
  StepOptions& options() { return options_; }
  /// Picks up parameter groups added to the optimizer; also called before each step.
  void take_parameters();
  /// Null unless the module uses manual optimization.
  ManualOptimization* manual() const { return manual_.get(); }
  /// The parameters that the optimizer steps; empty with manual optimization.
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  struct Window {
    HostRead skipped;
    std::int64_t number;  ///< from 1
  };

  StepOutput forward(const Batch& batch, int index, const TrainState& state);
  StepOutput run_stages(Stages& stages, const Batch& batch, int index, TrainState& state);
  void zero_grad();
  void refuse_no_loss() const;
  StepOutput run_manual(const Batch& batch, int index, TrainState& state);
  void backward(const StepOutput& out, std::int64_t samples, bool closes, TrainState& state);
  void backward(const Tensor& loss, bool closes, const std::function<void()>& run);
  void weigh(const StepOutput& out, double weight, TrainState& state);
  Tensor share_of(const StepOutput& out, double weight, double nominal);
  bool capture_pass(const Batch& batch, int index, const TrainState& state);
  StepOutput run_captured(const Batch& batch, std::int64_t samples, bool closes, TrainState& state);
  void end_batch(std::int64_t samples, bool closes, TrainState& state);
  void clear_gradients();
  void close_window(TrainState& state);
  void step_window(const Window& window, const Tensor& found_inf);
  void settle(TrainState& state, bool wait);
  bool schedules_steps() const;
  Tensor of_all_ranks(const Tensor& found_inf);
  void correct_gradients(double factor);
  void step_schedulers(Interval interval, std::int64_t count);
  void step_scheduler(std::size_t k, std::int64_t count, std::optional<double> metric);

  LevinModule& module_;
  Optimizers& optimizers_;
  Strategy& strategy_;
  PrecisionPlugin& precision_;
  StepHooks& hooks_;
  StepOptions options_;
  OwnedPtr<ManualOptimization> manual_;
  OwnedPtr<StepCapture> capture_;  // null unless options_.capture
  std::vector<Parameter> parameters_;  // of the optimizer
  std::deque<Window> open_;            // windows not yet known to be skipped or not
  bool weighs_ = true;                 // the open window's losses have weights that ranks compare
  bool obeys_ = false;                 // the module's optimizer_step calls the base, as observed so far
};

}  // namespace levin
