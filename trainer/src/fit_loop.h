#pragma once
// Counting epochs and batches: when to validate, when to save, when to stop.

#include <levin/trainer/step_runner.h>

#include "checkpoint_keeper.h"
#include "eval_loop.h"

namespace levin {

/// What a fit has besides the run.
struct FitParts {
  DataModule& data;          ///< the loaders in use
  const DataSource& source;  ///< where others come from
  Optimizers& optimizers;
  StepRunner& runner;
  CheckpointKeeper& keeper;
};

/// Takes the training loader from its source, unless it is there, and counts its batches.
void load_train(Run& run, DataModule& data, const DataSource& source);

/// The batches of one epoch, with the validations between them.
class EpochLoop {
 public:
  EpochLoop(Run& run, FitParts& parts, const EvalPlan& val) : run_(run), parts_(parts), val_(val) {}

  /// Runs the epoch that the state names, or what is left of it after a resume.
  void run(bool resumed);

 private:
  void run_batches();
  /// False where the module leaves out the rest of the epoch.
  bool train_batch(const Batch& batch, bool last);
  void skip_epoch();
  bool done() const;
  void validate_if_due();
  void validate(bool resumed);
  bool validation_due() const;
  void finish();
  void step_plateau();
  void interrupt_if_asked();
  void requeue();
  bool max_steps_reached() const;
  void update_rates();

  Run& run_;
  FitParts& parts_;
  const EvalPlan& val_;
  std::int64_t batches_ = 0;    // of an epoch, or at most that many; -1 where nobody knows
  std::int64_t val_every_ = 0;  // batches between validations; 0: at the epoch's end, or by time
};

class FitLoop {
 public:
  FitLoop(Run& run, FitParts& parts);

  /// Trains until a limit is reached or a stop asked for. `resumed`: the state comes from a checkpoint.
  void run(bool resumed);

  /// Optimizer steps from the first to the last, -1 without an end.
  static std::int64_t total_steps(const TrainerConfig& config, std::int64_t train_batches,
                                  const std::vector<CallbackPtr>& callbacks);
  /// Epochs as the configuration means them, -1 without an end.
  static std::int64_t max_epochs(const TrainerConfig& config);

 private:
  bool done() const;
  void load_val();
  void sanity_check();
  /// Throws UsageError for a monitor of validation that the sanity check has not seen.
  void check_monitors() const;
  void reload();

  Run& run_;
  FitParts& parts_;
  EvalPlan val_;
};

}  // namespace levin
