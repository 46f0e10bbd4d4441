#pragma once
// The index that this thread is loading, for error messages.

#include <cstdint>

namespace levin::data::detail {

/// Index of a sample in its dataset or shard; -1 if unknown.
inline constinit thread_local std::int64_t current_index = -1;
/// Shard being read; -1 if the data has no shards.
inline constinit thread_local std::int64_t current_shard = -1;

}  // namespace levin::data::detail
