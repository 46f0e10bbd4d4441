#pragma once
// Access to parts of a checkpoint outside of a fit.

#include <levin/trainer/checkpoint/checkpoint.h>

#include <filesystem>

#include "src/loops/run.h"

namespace levin {

/// Adds the callbacks' state.
void save_callbacks(Checkpoint& checkpoint, const std::vector<CallbackPtr>& callbacks);

/// Restores the callbacks and the position of the run, before the optimizers are created.
void restore_callbacks(Run& run, const Checkpoint& checkpoint, const std::filesystem::path& folder);

/// Removes everything that is needed only to resume training.
void keep_weights_only(Checkpoint& checkpoint);

/// Returns the trained weights, also if the checkpoint's model weights are an average.
StateDict trained_weights(const Checkpoint& checkpoint);

}  // namespace levin
