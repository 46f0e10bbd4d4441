#pragma once
// The module's steps on all replicas of this process; with one, the steps themselves.

#include <levin/trainer/module.h>
#include <levin/trainer/strategy.h>

namespace levin {

/// Outputs are joined; what the replicas log becomes one value a name, and their metrics gather in the module's.
std::vector<Tensor> run_on_replicas(LevinModule& module, Strategy& strategy, const Batch& batch,
                                    const Strategy::ReplicaStep& step);

/// training_step, then training_step_end: losses count by the samples of their parts, or by their own weights.
StepOutput run_training_step(LevinModule& module, Strategy& strategy, const Batch& batch, int index);

/// Throws ShapeError unless the loss is one number.
void check_loss(const Tensor& loss);

}  // namespace levin
