#pragma once
// Steps by the program's own hand: several optimizers, in the order and at the times that training_step wants.

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

/// Throws UsageError for a precision with weights of its own under a strategy whose ranks have pieces of the weights.
void refuse_own_weights(const Strategy& strategy, const Precision& precision);

/// While one is alive, only the parameters of one optimizer ask for gradients, and gradients are exchanged only where
/// its `sync_grad` says so. Its end gives both back as they were, also when an exception passes.
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

/// One of the optimizers of a run: `auto [g_opt, d_opt] = optimizers<2>();`
class OptimizerHandle {
 public:
  OptimizerHandle(ManualOptimization& owner, std::size_t index) : owner_(&owner), index_(index) {}

  void zero_grad(bool set_to_none = true) const;
  /// Steps on what manual_backward has gathered: brought back to scale first, left out where that is not finite.
  void step() const;
  /// Evaluates the loss by `closure` (zero_grad, forward, manual_backward) first; returns it.
  Tensor step(const optim::Optimizer::Closure& closure) const;
  /// Holds the other optimizers' parameters still for the time of a scope: `auto only = d_opt.toggle_model();`.
  /// Without `sync_grad` ranks exchange no gradients in it: give false for the batches of an accumulation window that
  /// do not step. What they gathered is averaged with the rest by a later step(), clip_gradients() or backward. A step
  /// inside of such a scope uses this rank's own gradients, so that replicas differ from then on; throws UsageError
  /// where a strategy divides the optimizer's state, whose steps need all ranks.
  [[nodiscard]] Toggled toggle_model(bool sync_grad = true) const;
  [[nodiscard]] Toggled toggle_optimizer(bool sync_grad = true) const { return toggle_model(sync_grad); }
  /// Clips these gradients, brought back to scale, by "norm" or "value"; step() then uses them as they are.
  void clip_gradients(double value, const std::string& algorithm = "norm") const;

  optim::Optimizer& optimizer() const;
  std::vector<optim::ParamGroup>& param_groups() const { return optimizer().param_groups(); }
  std::size_t index() const { return index_; }

 private:
  ManualOptimization* owner_;
  std::size_t index_;
};

/// A scheduler of a run, stepped by training_step or an epoch hook.
class SchedulerHandle {
 public:
  SchedulerHandle(Optimizers& optimizers, std::size_t index) : optimizers_(&optimizers), index_(index) {}
  /// `metric` is for plateau schedulers.
  void step(std::optional<double> metric = {}) const { optimizers_->step_scheduler(metric, index_); }
  const SchedulerConfig& config() const { return optimizers_->config(index_); }

 private:
  Optimizers* optimizers_;
  std::size_t index_;
};

/// What the handles work on; used by the Trainer in manual mode and by Fabric. Gradients are scaled as Precision says.
class ManualOptimization {
 public:
  /// When the scale follows what steps have found: with finish_batch, so that it is the same for all optimizers of one
  /// batch, or with every step.
  enum class ScaleMoves { with_batch, with_step };
  /// Throws UsageError for several optimizers and a precision that keeps weights of its own (16-o2).
  ManualOptimization(Optimizers& optimizers, Strategy& strategy, Precision& precision, StepHooks& hooks,
                     ScaleMoves moves = ScaleMoves::with_batch);

  void backward(const Tensor& loss);
  /// Where there is one optimizer: backward of a loss at scale, which averages the gradients while it runs where the
  /// strategy can do that and `average` asks for it.
  void backward_of_only(const Tensor& scaled, bool average);
  /// Before a backward that is not one of these two.
  void gradients_are_added();
  void zero_grad(std::size_t i, bool set_to_none);
  Tensor step(std::size_t i, const optim::Optimizer::Closure& closure);
  void clip_gradients(std::size_t i, double value, const std::string& algorithm);

  /// After each batch: the scale follows what the steps found. Throws LossDiverged as Precision::update does.
  void finish_batch();
  /// Counts the steps that were made, those that are known or (waiting) all.
  void settle(TrainState& state, bool wait);

  Optimizers& optimizers() const { return optimizers_; }

 private:
  friend class Toggled;
  const Tensor& unscale(std::size_t i);

  Optimizers& optimizers_;
  Strategy& strategy_;
  Precision& precision_;
  StepHooks& hooks_;
  ScaleMoves moves_;
  bool syncs_ = true;  // gradients are exchanged
  /// The gradients of an optimizer.
  struct Gathered {
    bool averaged = false;          // over the ranks, and nothing was added since
    std::optional<Tensor> found{};  // their found-inf, where they are at scale already
  };
  std::vector<Gathered> gathered_;
  std::optional<Tensor> found_;  // by all steps of this batch
  bool own_found_ = false;       // some of that is this rank's alone
  struct Step {
    std::size_t optimizer;
    HostRead skipped;
  };
  std::deque<Step> open_;  // of which it is not yet known whether they were skipped
};

}  // namespace levin
