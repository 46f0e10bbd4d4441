#pragma once
// Which sample this thread is loading, so that an error can name it.

#include <cstdint>

namespace levin::data::detail {

/// -1 when unknown.
inline constinit thread_local std::int64_t current_index = -1;

}  // namespace levin::data::detail
