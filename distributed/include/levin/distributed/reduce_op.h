#pragma once
// Reduction operations of collectives.

#include <cstdint>
#include <string>

namespace levin::distributed {

/// How a reduction combines the ranks' elements. `avg` is for floating types only. Booleans: sum and max are "or",
/// product and min are "and".
enum class ReduceOp : std::uint8_t { sum, avg, min, max, product };
/// Returns the name: "sum".
std::string to_string(ReduceOp op);

}  // namespace levin::distributed
