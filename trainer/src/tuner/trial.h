#pragma once
// Some steps of training without a Trainer, after which nothing has happened.

#include <levin/trainer/step_runner.h>

namespace levin {

/// Takes the module to the configuration's device and precision, and gives all back at its end.
class Trial {
 public:
  /// `steps` is what estimated_stepping_batches tells the module.
  Trial(LevinModule& module, data::DataLoader& loader, const TrainerConfig& config, std::int64_t steps);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Optimizers& optimizers() { return optimizers_; }
  /// Batches from the loader's beginning, and again from there where they end, until `steps` windows are complete or
  /// `go_on`, asked after each batch with the loss (nothing for a skipped batch), says false.
  void run(std::int64_t steps, const std::function<bool(std::optional<double> loss)>& go_on = {});

 private:
  void restore();

  LevinModule& module_;
  data::DataLoader& loader_;
  data::LoaderState place_;
  GeneratorState random_;
  StateDict weights_;                                 // and buffers
  StateMap objects_;                                  // the states of the module's metrics
  std::vector<std::pair<Tensor, Tensor>> gradients_;  // of parameters that had one
  std::vector<std::pair<nn::Module*, bool>> modes_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<Precision> precision_;
  MetricStore metrics_;
  TrainState state_;
  StepHooks hooks_;
  Optimizers optimizers_;
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace levin
