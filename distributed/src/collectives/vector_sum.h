#pragma once
// Sums of two buffers with the widest vectors of the machine.

#include <levin/core/dtype.h>

namespace levin::distributed {

/// into[i] += from[i] for float32, float64 and float16, rounded to nearest even. Returns false for other types, without
/// doing anything.
bool add_into(DType dtype, void* into, const void* from, std::size_t count);

}  // namespace levin::distributed
