#pragma once
// What the ways of exchanging gradients and weights have in common.

#include <levin/distributed/comm_hooks.h>

namespace levin::distributed {

/// Stage s of all, in their order, before stage s + 1 of any.
void run_stages(const std::vector<CommStages>& all);

/// The same ranks; nobody else's calls come between.
std::shared_ptr<ProcessGroup> group_of_its_own(ProcessGroup& group);

}  // namespace levin::distributed
