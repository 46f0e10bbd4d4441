#pragma once
// An average that sums in the order of the ranks, independent of an element's position in its message.

#include <levin/distributed/comm_hooks.h>

namespace levin::distributed {

/// Begins the average of `buffer` (any sizes, floating), which it holds after the stages. Rank r sums part r of the
/// buffer: as many bytes as a ring. The sum of two numbers does not depend on their order, so with up to 2 ranks it has
/// the bits of all_reduce. 16-bit types are summed in float32 and rounded once.
CommStages ordered_average(ProcessGroup& group, const Tensor& buffer);

}  // namespace levin::distributed
