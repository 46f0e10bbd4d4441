#pragma once
// Plans a rank's part of a call as a list of small steps: NCCL's ring algorithms on one channel, in the order of ranks.

#include "segment.h"

#include <vector>

namespace levin::emulator::nccl {

/// The step's value is the message from `from`, combined with the rank's own elements if it has some, or only these. It
/// is written to `out` and sent to `to` if they are set.
struct Step {
  int from = -1, to = -1;
  const char* own = nullptr;
  char* out = nullptr;
  std::size_t count = 0;
  bool last = false;  ///< the value is the reduction's result
};

/// Returns the steps of a collective on this rank, in order. Empty chunks have no step.
std::vector<Step> plan_collective(const Call& call, int rank, int ranks, const char* send, char* receive);
/// Returns the steps of a message to or from a peer, in pieces.
std::vector<Step> plan_message(const Call& call, int from, int to, const char* send, char* receive);

/// Return the number of elements of sendbuff and recvbuff on this rank, 0 if NCCL does not access it.
std::size_t elements_sent(const Call& call, int rank, int ranks);
std::size_t elements_received(const Call& call, int rank, int ranks);

}  // namespace levin::emulator::nccl
