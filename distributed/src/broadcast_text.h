#pragma once
// Text of rank 0 for all.

#include <levin/distributed/process_group.h>

namespace levin::distributed {

/// What rank 0 gives, on every rank.
std::string broadcast_text(ProcessGroup& group, const std::string& own);

}  // namespace levin::distributed
