#pragma once

#include <cstddef>

namespace levin::test {

/// Returns whether this process runs item `index` of a list shared by several processes: with LEVIN_SHARD=i/n it runs
/// every n-th item from the i-th, counted from 1; without it, all. Throws UsageError for any other text.
bool in_shard(std::size_t index);

}  // namespace levin::test
