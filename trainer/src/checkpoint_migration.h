#pragma once
// Checkpoints of earlier versions, brought to today's form.

#include <levin/trainer/checkpoint.h>

namespace levin {

/// `version` is at most kCheckpointVersion. Throws StateError where the values are not of that version.
void migrate(Checkpoint& checkpoint, int version);

}  // namespace levin
