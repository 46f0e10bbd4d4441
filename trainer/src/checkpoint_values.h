#pragma once
// Parts of a checkpoint's contents that need no fit.

#include <levin/trainer/checkpoint.h>

#include "run.h"

namespace levin {

/// Adds what callbacks keep.
void save_callbacks(Checkpoint& checkpoint, const std::vector<CallbackPtr>& callbacks);

/// Gives callbacks what they had, and the run its place; what comes before the optimizers are made.
void restore_callbacks(Run& run, const Checkpoint& checkpoint, const std::filesystem::path& folder);

/// Takes everything out that is there to go on training.
void keep_weights_only(Checkpoint& checkpoint);

/// The weights that were trained, where the checkpoint's network is an average of them.
StateDict trained_weights(const Checkpoint& checkpoint);

}  // namespace levin
