#pragma once
// The collective operations as rings and trees of messages, on tensors of the host.

#include <functional>

#include "src/announcement.h"
#include "src/reduction.h"

namespace levin::distributed {

/// What all_to_all found: rank `from` sends another number of elements than this rank expects.
struct SplitMismatch {
  int from;
  std::int64_t sent, expected;
};

/// Runs a collective (not send or recv); tensors lie on the host. Calls are compared before anything of the others is
/// used. Throws SplitMismatch, and what `check` throws.
void run_collective(Channel& channel, const Collective& c, const Announcement& own, const Check& check);

/// The ranks tell each other how many elements of an all_to_all they send. Throws SplitMismatch.
void compare_splits(Channel& channel, const Collective& c);

/// A message's announcement, which comes before the data.
void send_head(Channel& channel, const Collective& c, const Announcement& own);
Announcement recv_head(Channel& channel, const Collective& c);

/// A message: first its announcement, then the data; `check` may throw before any of that is taken.
void run_send(Channel& channel, const Collective& c, const Announcement& own);
void run_recv(Channel& channel, const Collective& c, const std::function<void(const Announcement&)>& check);

}  // namespace levin::distributed
