#pragma once
// Hooks within a training step.

#include <levin/kernels/host_read.h>
#include <levin/optim/optimizer.h>

namespace levin {

/// Called at fixed points of a step. The Trainer forwards them to callbacks and module.
struct StepHooks {
  virtual ~StepHooks() = default;
  virtual void on_before_zero_grad() {}
  /// The loss of a batch as training_step returned it, after its forward. Must not wait for it.
  virtual void on_loss(const Tensor&) {}
  virtual void on_before_backward(const Tensor&) {}
  virtual void backward(const Tensor& loss) { loss.backward(); }
  virtual void on_after_backward() {}
  /// The gradients of a window are reduced and unscaled. `skipped` becomes nonzero if they are not finite, so that the
  /// window is not stepped.
  virtual void on_unscaled(const HostRead& /*skipped*/) {}
  virtual void on_before_optimizer_step(optim::Optimizer&) {}
};

}  // namespace levin
