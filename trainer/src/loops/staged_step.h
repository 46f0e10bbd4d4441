#pragma once
// A training step whose micro-batches pass through several ranks, of which rank zero has the loss.

#include <levin/trainer/precision.h>
#include <levin/trainer/step_hooks.h>
#include <levin/trainer/strategies/stages.h>

#include "src/loops/replica_run.h"

namespace levin {

/// Weighs the parts like the batches of an accumulation window: a part's loss is weighted by its samples (or its own
/// weight) over those of a nominal window. The window's factor corrects the gradients if the actual weights differ.
class StagedStep final : public BatchParts {
 public:
  struct Place {
    int index = 0;             ///< index of the batch
    std::int64_t samples = 0;  ///< samples of the batch
    std::int64_t window = 1;   ///< batches per window
    double nominal = 0;        ///< weight of the window; 0 before its first part
  };
  StagedStep(LevinModule& module, Strategy& strategy, PrecisionPlugin& precision, StepHooks& hooks, const Place& place)
      : module_(module), strategy_(strategy), precision_(precision), hooks_(hooks), place_(place), run_(module) {}

  Tensor forward(std::size_t number, const Batch& part) override;
  void backward(const Tensor& share) override;
  void begin(const Batch& part) override;
  std::vector<Tensor> compute(const std::function<std::vector<Tensor>()>& layers) override;

  struct Result {
    StepOutput output;  ///< the batch's loss; extras on rank zero only
    double weight = 0, nominal = 0;
  };
  /// Broadcasts rank zero's result to all ranks, which also log its values. Collective.
  Result share();

 private:
  StepOutput whole() const;

  LevinModule& module_;
  Strategy& strategy_;
  PrecisionPlugin& precision_;
  StepHooks& hooks_;
  Place place_;
  ReplicaRun run_;
  std::vector<StepOutput> outputs_;  // one per part
  std::vector<double> weights_;
};

}  // namespace levin
