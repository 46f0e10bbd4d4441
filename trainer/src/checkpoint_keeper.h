#pragma once
// Between policies, which decide, and the files: takes the state of a fit apart and puts it together again.

#include <levin/trainer/checkpoint.h>
#include <levin/trainer/optimizers.h>
#include <levin/trainer/step_runner.h>

#include "run.h"

namespace levin {

class CheckpointKeeper {
 public:
  CheckpointKeeper(Run& run, Optimizers& optimizers, StepRunner& runner, const DataModule& data);

  /// Asks all policies and does what they say. Throws IoError when a checkpoint could not be written; the policy then
  /// stands where it stood before.
  void save_point(SavePoint point);
  /// Saves what is needed to go on after a signal; the folder, empty when no policy wants one.
  std::filesystem::path save_interrupted();

  /// Everything but the order of the files.
  Checkpoint snapshot();
  /// Puts such a state back; throws StateError, naming the folder, when it is of another network or optimizer.
  void restore(const Checkpoint& checkpoint, const std::filesystem::path& folder);

 private:
  template <class F>
  std::filesystem::path ask(CheckpointPolicy& policy, const F& decide);
  void perform(const CheckpointAction& action);
  StateMap callback_states(StateDict& tensors) const;

  Run& run_;
  Optimizers& optimizers_;
  StepRunner& runner_;
  const DataModule& data_;
  std::vector<CheckpointPolicy*> policies_;
};

/// Gives callbacks what they had, and the run its place; what comes before the optimizers are made.
void restore_callbacks(Run& run, const Checkpoint& checkpoint, const std::filesystem::path& folder);

/// The weights that were trained, where the checkpoint's network is an average of them.
StateDict trained_weights(const Checkpoint& checkpoint);

/// Throws StateError where a checkpoint was made with another precision.
void check_precision(const Checkpoint& checkpoint, const Precision& precision, const std::filesystem::path& folder);

/// Loads the weights of a checkpoint; throws StateError that names the folder when they do not fit.
void load_weights(Precision& precision, nn::Module& module, const StateDict& weights,
                  const std::filesystem::path& folder);

}  // namespace levin
