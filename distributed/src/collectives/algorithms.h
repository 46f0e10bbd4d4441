#pragma once
// Collective operations on host tensors, as rings and trees of messages.

#include <functional>

#include "src/collectives/collective_header.h"
#include "src/collectives/reduction.h"

namespace levin::distributed {

/// Error of all_to_all: rank `from` sends another number of elements than this rank expects.
struct SplitMismatch {
  int from;
  std::int64_t sent, expected;
};

/// Runs a collective (not send or recv) on host tensors. Compares the headers of all ranks before it uses any of their
/// data. Throws SplitMismatch, and what `check` throws.
void run_collective(Channel& channel, const Collective& c, const CollectiveHeader& own, const Check& check);

/// Exchanges the numbers of elements that the ranks of an all_to_all send. Throws SplitMismatch.
void compare_splits(Channel& channel, const Collective& c);

/// Send and receive the header of a message, which precedes its data.
void send_header(Channel& channel, const Collective& c, const CollectiveHeader& own);
CollectiveHeader recv_header(Channel& channel, const Collective& c);

/// Send and receive a message: its header, then the data. `check` may throw before any data is received.
void run_send(Channel& channel, const Collective& c, const CollectiveHeader& own);
void run_recv(Channel& channel, const Collective& c, const std::function<void(const CollectiveHeader&)>& check);

}  // namespace levin::distributed
