#pragma once
// What a rank does in a call, as a list of small steps: NCCL's ring algorithms on one channel, in the order of ranks.

#include "segment.h"

#include <vector>

namespace levin::emulator::nccl {

/// The value is the message from `from`, combined with the rank's own elements where it has some, or these alone. It
/// goes to `out` and to `to`, where there are such.
struct Step {
  int from = -1, to = -1;
  const char* own = nullptr;
  char* out = nullptr;
  std::size_t count = 0;
  bool last = false;  ///< the reduction's result
};

/// The steps of a collective on this rank, in order. Chunks without elements have no step.
std::vector<Step> plan_collective(const Call& call, int rank, int ranks, const char* send, char* receive);
/// A message to or from the peer, in pieces.
std::vector<Step> plan_message(const Call& call, int from, int to, const char* send, char* receive);

/// Elements of sendbuff and recvbuff on this rank: 0 where NCCL doesn't touch it.
std::size_t elements_sent(const Call& call, int rank, int ranks);
std::size_t elements_received(const Call& call, int rank, int ranks);

}  // namespace levin::emulator::nccl
