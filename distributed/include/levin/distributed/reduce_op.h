#pragma once
// Reduction operations of collectives.

#include <cstdint>
#include <string>

namespace levin::distributed {

/// `avg` is for floating types only. Booleans: sum and max are "or", product and min are "and".
enum class ReduceOp : std::uint8_t { sum, avg, min, max, product };
std::string to_string(ReduceOp op);

}  // namespace levin::distributed
