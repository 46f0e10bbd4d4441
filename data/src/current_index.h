#pragma once
// The index that this thread is loading, so that an error can name it.

#include <cstdint>

namespace levin::data::detail {

/// Index of a sample, or its number in a shard; -1 when unknown.
inline constinit thread_local std::int64_t current_index = -1;
/// -1 when the data has no shards.
inline constinit thread_local std::int64_t current_shard = -1;

}  // namespace levin::data::detail
