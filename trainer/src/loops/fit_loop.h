#pragma once
// Counts epochs and batches: when to validate, save and stop.

#include <levin/trainer/step_runner.h>

#include "src/checkpoint/checkpoint_keeper.h"
#include "src/loops/eval_loop.h"
#include "src/loops/loss_check.h"

namespace levin {

/// Parts of a fit besides the run.
struct FitParts {
  DataModule& data;          ///< the loaders in use
  const DataSource& source;  ///< where further loaders come from
  Optimizers& optimizers;
  StepRunner& runner;
  CheckpointKeeper& keeper;
  LossCheck& loss_check;
};

/// Requests the training loader from its source unless it is present, and counts its batches.
void load_train(Run& run, DataModule& data, const DataSource& source);

/// Copies the learning rates of all parameter groups to run.learning_rates.
void update_rates(Run& run, const FitParts& parts);

/// Runs the batches of one epoch and the validations between them.
class EpochLoop {
 public:
  EpochLoop(Run& run, FitParts& parts, const EvalPlan& val) : run_(run), parts_(parts), val_(val) {}

  /// Runs the current epoch, or the rest of it after a resume.
  void run(bool resumed);

 private:
  void run_batches();
  /// Returns false if the module skips the rest of the epoch.
  bool train_batch(const Batch& batch, bool last);
  void skip_epoch();
  bool done() const;
  void validate_if_due();
  void validate(bool resumed);
  bool validation_due() const;
  void finish();
  void step_plateaus();
  void interrupt_if_asked();
  void requeue();
  bool max_steps_reached() const;

  Run& run_;
  FitParts& parts_;
  const EvalPlan& val_;
  std::int64_t batches_ = 0;    // per epoch, or an upper bound; -1 if unknown
  std::int64_t val_every_ = 0;  // batches between validations; 0: at the epoch's end, or by time
};

class FitLoop {
 public:
  FitLoop(Run& run, FitParts& parts);

  /// Trains until a limit is reached or a stop is requested. `resumed`: the state comes from a checkpoint.
  void run(bool resumed);

  /// Optimizer steps from first to last, -1 if unlimited.
  static std::int64_t total_steps(const TrainerConfig& config, std::int64_t train_batches,
                                  const std::vector<CallbackPtr>& callbacks);
  /// Number of epochs that the configuration implies, -1 if unlimited.
  static std::int64_t max_epochs(const TrainerConfig& config);

 private:
  bool done() const;
  void load_val();
  void sanity_check();
  /// Throws UsageError for a validation monitor that the sanity check did not log.
  void check_monitors() const;
  void reload();

  Run& run_;
  FitParts& parts_;
  EvalPlan val_;
};

}  // namespace levin
