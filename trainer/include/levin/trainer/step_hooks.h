#pragma once
// Hooks within a training step.

#include <levin/kernels/host_read.h>
#include <levin/optim/optimizer.h>

namespace levin {

/// Called at fixed points of a step. The Trainer forwards them to callbacks and module.
struct StepHooks {
  virtual ~StepHooks() = default;
  /// Called before the gradients are cleared, at the first batch of a window.
  virtual void on_before_zero_grad() {}
  /// Called with the loss of a batch as training_step returned it. Must not wait for it.
  virtual void on_loss(const Tensor&) {}
  /// Called with the loss on which backward runs: scaled and, in automatic optimization, weighted by its share of the
  /// window.
  virtual void on_before_backward(const Tensor&) {}
  /// Runs backward.
  virtual void backward(const Tensor& loss) { loss.backward(); }
  /// Called after each backward; the gradients may still be scaled and this rank's own.
  virtual void on_after_backward() {}
  /// Called when the gradients of a window are reduced and unscaled. `skipped` becomes nonzero if they are not finite,
  /// so that the window is not stepped.
  virtual void on_unscaled(const HostRead& /*skipped*/) {}
  /// Called before clipping and the optimizer's step, in windows that will be skipped too.
  virtual void on_before_optimizer_step(optim::Optimizer&) {}
};

}  // namespace levin
