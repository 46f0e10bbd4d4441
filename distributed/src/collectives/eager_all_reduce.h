#pragma once
// All-reduce in one round, for few bytes or two ranks.

#include "src/collectives/algorithms.h"

namespace levin::distributed {

/// True for few bytes, and for two ranks, where a ring sends as many bytes in two rounds.
bool uses_eager_all_reduce(Channel& channel, const Collective& c);
/// Eager all-reduce: every rank sends a header and its data to all others and reduces locally, in ring order. Between
/// two ranks the data that does not fit into the mailbox follows as a message.
void eager_all_reduce(Channel& channel, const Collective& c, const CollectiveHeader& own, const Check& check);

}  // namespace levin::distributed
