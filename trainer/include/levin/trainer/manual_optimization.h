#pragma once
// Manual optimization: training_step steps one or several optimizers itself.

#include <levin/kernels/host_read.h>
#include <levin/trainer/optimizers.h>
#include <levin/trainer/precision.h>
#include <levin/trainer/step_hooks.h>
#include <levin/trainer/strategy.h>

#include <array>
#include <deque>

namespace levin {

class ManualOptimization;
struct TrainState;

/// Throws UsageError if the precision has its own copy of the weights and the strategy shards weights.
void refuse_own_weights(Strategy& strategy, const PrecisionPlugin& precision);

/// While alive, only the parameters of one optimizer require gradients, and gradients are reduced only with
/// `sync_grad`. The destructor restores both, also during an exception.
class Toggled {
 public:
  ~Toggled();
  Toggled(Toggled&& other) noexcept;
  Toggled(const Toggled&) = delete;
  Toggled& operator=(const Toggled&) = delete;
  Toggled& operator=(Toggled&&) = delete;

 private:
  friend class OptimizerHandle;
  Toggled(ManualOptimization& owner, std::size_t index, bool sync_grad);
  ManualOptimization* owner_;
  bool synced_before_;
  std::vector<std::pair<Tensor, bool>> before_;
};

/// Handle of one of a run's optimizers: `auto [g_opt, d_opt] = optimizers<2>();`
class OptimizerHandle {
 public:
  /// Refers to optimizer `index` of `owner`, which must outlive the handle.
  OptimizerHandle(ManualOptimization& owner, std::size_t index) : owner_(&owner), index_(index) {}

  /// As Optimizer::zero_grad, also for gradients that the precision or the strategy keep elsewhere.
  void zero_grad(bool set_to_none = true) const;
  /// Steps with the gradients accumulated by manual_backward: unscales them first and skips the step if they are not
  /// finite.
  void step() const;
  /// Evaluates the loss by `closure` (zero_grad, forward, manual_backward) first and returns it.
  Tensor step(const optim::Optimizer::Closure& closure) const;
  /// Disables gradients for the other optimizers' parameters within a scope: `auto only = d_opt.toggle_model();`.
  /// Without `sync_grad` ranks do not reduce gradients in that scope: pass false for the batches of an accumulation
  /// window that do not step. A later step(), clip_gradients() or backward averages the accumulated gradients with the
  /// rest. A step inside such a scope uses this rank's local gradients, so the replicas diverge; it throws UsageError
  /// if the strategy shards the optimizer's state, whose steps need all ranks.
  [[nodiscard]] Toggled toggle_model(bool sync_grad = true) const;
  [[nodiscard]] Toggled toggle_optimizer(bool sync_grad = true) const { return toggle_model(sync_grad); }
  /// Unscales these gradients and clips them by "norm" or "value"; step() then uses them as they are. Throws UsageError
  /// for another algorithm.
  void clip_gradients(double value, const std::string& algorithm = "norm") const;

  /// The optimizer, its parameter groups, and its index in configure_optimizers. Step through the handle, not through
  /// the optimizer.
  optim::Optimizer& optimizer() const;
  std::vector<optim::ParamGroup>& param_groups() const { return optimizer().param_groups(); }
  std::size_t index() const { return index_; }

 private:
  ManualOptimization* owner_;
  std::size_t index_;
};

/// Handle of a scheduler, which training_step or an epoch hook steps.
class SchedulerHandle {
 public:
  /// Refers to scheduler `index` of `optimizers`, which must outlive the handle.
  SchedulerHandle(Optimizers& optimizers, std::size_t index) : optimizers_(&optimizers), index_(index) {}
  /// Steps the scheduler. `metric` is for plateau schedulers; throws UsageError if one gets none.
  void step(std::optional<double> metric = {}) const { optimizers_->step_scheduler(metric, index_); }
  /// The configuration with which it was added; the Trainer does not obey it in manual mode.
  const SchedulerConfig& config() const { return optimizers_->config(index_); }
  /// Index among all schedulers of configure_optimizers.
  std::size_t index() const { return index_; }

 private:
  Optimizers* optimizers_;
  std::size_t index_;
};

/// Implements the handles, for the Trainer in manual mode and for Fabric. PrecisionPlugin scales the gradients.
class ManualOptimization {
 public:
  /// When the loss scale is updated: in finish_batch, so that it is the same for all optimizers of one batch, or with
  /// every step.
  enum class ScaleMoves { with_batch, with_step };
  /// Throws UsageError for several optimizers with a precision that has its own copy of the weights (16-o2).
  ManualOptimization(Optimizers& optimizers, Strategy& strategy, PrecisionPlugin& precision, StepHooks& hooks,
                     ScaleMoves moves = ScaleMoves::with_batch);

  /// Scales the loss, calls the hooks and runs backward, for LevinModule::manual_backward(). Throws ShapeError unless
  /// the loss has one element.
  void backward(const Tensor& loss);
  /// With a single optimizer: runs backward on a scaled loss. With `average`, gradients are averaged during backward if
  /// the strategy supports it.
  void backward_of_only(const Tensor& scaled, bool average);
  /// Must be called before any other backward.
  void gradients_are_added();
  /// The functions of the handle of optimizer i.
  void zero_grad(std::size_t i, bool set_to_none);
  Tensor step(std::size_t i, const optim::Optimizer::Closure& closure);
  void clip_gradients(std::size_t i, double value, const std::string& algorithm);

  /// Called after each batch: updates the scale from the results of the steps. Throws LossDiverged as
  /// PrecisionPlugin::update does.
  void finish_batch();
  /// Counts the optimizer steps that were made: those already known or, with `wait`, all.
  void settle(TrainState& state, bool wait);

  /// The optimizers that the handles refer to.
  Optimizers& optimizers() const { return optimizers_; }

 private:
  friend class Toggled;
  const Tensor& unscale(std::size_t i);

  Optimizers& optimizers_;
  Strategy& strategy_;
  PrecisionPlugin& precision_;
  StepHooks& hooks_;
  ScaleMoves moves_;
  bool syncs_ = true;  // whether gradients are reduced
  /// State of one optimizer's gradients.
  struct Gathered {
    bool averaged = false;          // averaged over the ranks, with nothing added since
    std::optional<Tensor> found{};  // their found-inf, if they are already unscaled
  };
  std::vector<Gathered> gathered_;
  std::optional<Tensor> found_;  // combined over all steps of this batch
  bool own_found_ = false;       // part of found_ is local to this rank
  struct Step {
    std::size_t optimizer;
    HostRead skipped;
  };
  std::deque<Step> open_;  // steps not yet known to be skipped or made
};

}  // namespace levin
