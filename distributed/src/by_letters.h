#pragma once
// Sums that need no ring.

#include "src/algorithms.h"

namespace levin::distributed {

/// Of few bytes, or on two ranks, where a ring sends as much and takes two turns.
bool goes_by_letters(Channel& channel, const Collective& c);
/// Everybody writes everybody a letter with his announcement and his numbers, and adds up all in the ring's order. What
/// two ranks have no room for in a letter follows as a message.
void all_reduce_by_letters(Channel& channel, const Collective& c, const Announcement& own, const Check& check);

}  // namespace levin::distributed
