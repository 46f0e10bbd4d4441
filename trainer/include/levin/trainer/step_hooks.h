#pragma once
// Hooks within a training step.

#include <levin/optim/optimizer.h>

namespace levin {

/// Called at fixed points of a step. The Trainer forwards them to callbacks and module.
struct StepHooks {
  virtual ~StepHooks() = default;
  virtual void on_before_zero_grad() {}
  virtual void on_before_backward(const Tensor&) {}
  virtual void backward(const Tensor& loss) { loss.backward(); }
  virtual void on_after_backward() {}
  virtual void on_before_optimizer_step(optim::Optimizer&) {}
};

}  // namespace levin
