#pragma once
// Some training steps without a Trainer, after which all state is restored.

#include <levin/trainer/callback.h>
#include <levin/trainer/step_runner.h>

namespace levin {

/// Moves the module to the configuration's device and precision; the destructor restores everything.
class Trial {
 public:
  /// `steps` is the value of the module's estimated_stepping_batches().
  Trial(LevinModule& module, data::DataLoader& loader, const TrainerConfig& config, std::int64_t steps);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Optimizers& optimizers() { return optimizers_; }
  /// Runs batches from the loader's beginning, cyclically, until `steps` windows are complete or `go_on`, called after
  /// each batch with the loss (empty for a skipped batch), returns false.
  void run(std::int64_t steps, const std::function<bool(std::optional<double> loss)>& go_on = {});

 private:
  void restore();

  LevinModule& module_;
  data::DataLoader& loader_;
  data::LoaderState place_;
  GeneratorState random_;
  StateDict weights_;                                 // and buffers
  StateMap objects_;                                  // state of the module's metrics
  std::vector<std::pair<Tensor, Tensor>> gradients_;  // of parameters that had a gradient
  std::vector<std::pair<nn::Module*, bool>> modes_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<PrecisionPlugin> precision_;
  TrainerConfig config_;
  MetricStore metrics_;
  TrainState state_;
  StopToken stop_;
  RunContext context_;
  RunContext* around_;  // the run in which this trial takes place, or null
  StepHooks hooks_;
  Optimizers optimizers_;
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace levin
