#pragma once
// Counting epochs and batches: when to validate, when to save, when to stop.

#include <levin/trainer/step_runner.h>

#include "checkpoint_keeper.h"
#include "eval_loop.h"

namespace levin {

/// What a fit has besides the run.
struct FitParts {
  data::DataLoader& train;
  data::DataLoader* val = nullptr;
  Optimizers& optimizers;
  StepRunner& runner;
  CheckpointKeeper& keeper;
};

/// The batches of one epoch, with the validations between them.
class EpochLoop {
 public:
  EpochLoop(Run& run, FitParts& parts, std::int64_t val_batches);

  /// Runs the epoch that the state names, or what is left of it after a resume.
  void run(bool resumed);

 private:
  /// False where the module leaves out the rest of the epoch.
  bool train_batch(const Batch& batch);
  void validate_if_due();
  bool validation_due() const;
  void finish();
  void step_plateau();
  void interrupt_if_asked();
  bool max_steps_reached() const;
  void update_rates();

  Run& run_;
  FitParts& parts_;
  std::int64_t batches_;      // of an epoch
  std::int64_t val_batches_;
  std::int64_t val_every_;    // batches between validations
};

class FitLoop {
 public:
  FitLoop(Run& run, FitParts& parts);

  /// Trains until a limit is reached or a stop asked for. `resumed`: the state comes from a checkpoint.
  void run(bool resumed);

  /// Optimizer steps from the first to the last, -1 without an end.
  static std::int64_t total_steps(const TrainerConfig& config, std::int64_t train_batches, std::int64_t max_epochs);
  /// Epochs as the configuration means them, -1 without an end.
  static std::int64_t max_epochs(const TrainerConfig& config);

 private:
  bool done() const;
  void sanity_check();
  /// Throws UsageError for a monitor of validation that the sanity check has not seen.
  void check_monitors() const;

  Run& run_;
  FitParts& parts_;
  std::int64_t val_batches_;
};

}  // namespace levin
