#pragma once
// An average whose sum is taken in the order of the ranks, wherever an element stands in its message.

#include <levin/distributed/comm_hooks.h>

namespace levin::distributed {

/// Begins it; `buffer` (any sizes, floating) is the average after the stages. Rank r sums part r of the buffer: as many
/// bytes as a ring. Two numbers have one sum: with up to 2 ranks it has the bits of all_reduce. 16-bit types are summed
/// in float32 and rounded once.
CommStages ordered_average(ProcessGroup& group, const Tensor& buffer);

}  // namespace levin::distributed
