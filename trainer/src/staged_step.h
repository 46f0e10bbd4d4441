#pragma once
// A training step whose parts are on their way through several ranks, of which rank zero has the loss.

#include <levin/trainer/precision.h>
#include <levin/trainer/step_hooks.h>

#include "replica_run.h"

namespace levin {

/// The parts are as the batches of an accumulation window: a part's loss counts by its samples (or its own weight) over
/// those of a nominal window. A window's own factor corrects the gradients where the weights turned out others.
class StagedStep final : public BatchParts {
 public:
  struct Place {
    int index = 0;             ///< of the batch
    std::int64_t samples = 0;  ///< of the batch
    std::int64_t window = 1;   ///< batches
    double nominal = 0;        ///< weight of the window; 0 before its first part
  };
  StagedStep(LevinModule& module, Strategy& strategy, Precision& precision, StepHooks& hooks, const Place& place)
      : module_(module), strategy_(strategy), precision_(precision), hooks_(hooks), place_(place), run_(module) {}

  Tensor forward(std::size_t number, const Batch& part) override;
  void backward(const Tensor& share) override;
  void begin(const Batch& part) override;
  Tensor compute(const std::function<Tensor()>& layers) override;

  struct Result {
    StepOutput output;  ///< the batch's loss; extras on rank zero alone
    double weight = 0, nominal = 0;
  };
  /// What rank zero knows, on all ranks, which also log what it has. All ranks call.
  Result share();

 private:
  StepOutput whole() const;

  LevinModule& module_;
  Strategy& strategy_;
  Precision& precision_;
  StepHooks& hooks_;
  Place place_;
  ReplicaRun run_;
  std::vector<StepOutput> outputs_;  // of the parts
  std::vector<double> weights_;
};

}  // namespace levin
