#pragma once

#include <cstddef>

namespace levin::test {

/// Whether this process is to run item `index` of a list that several processes share: LEVIN_SHARD=i/n in the
/// environment gives it every n-th item, beginning with the i-th, i from 1. Without the variable it runs all. Throws
/// UsageError for any other text.
bool in_shard(std::size_t index);

}  // namespace levin::test
