#pragma once
// Helpers for the exchange of gradients and weights.

#include <levin/distributed/comm_hooks.h>

namespace levin::distributed {

/// Runs stage s of all buckets, in their order, before stage s + 1 of any.
void run_stages(const std::vector<CommStages>& all);

/// Returns a group of the same ranks whose calls are independent of those of `group`.
std::shared_ptr<ProcessGroup> group_of_its_own(ProcessGroup& group);

}  // namespace levin::distributed
