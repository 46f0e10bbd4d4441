#pragma once
// Converts checkpoints of earlier versions to the current format.

#include <levin/trainer/checkpoint/checkpoint.h>

namespace levin {

/// Converts from `version`, at most kCheckpointVersion. Throws StateError if the values do not have that version's
/// format.
void migrate(Checkpoint& checkpoint, int version);

}  // namespace levin
