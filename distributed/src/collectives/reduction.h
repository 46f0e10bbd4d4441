#pragma once
// Element-wise reduction of two buffers on the host.

#include <levin/distributed/process_group.h>

namespace levin::distributed {

/// into[i] = into[i] op from[i]; avg adds. The 16-bit floats are computed in float and rounded each time.
void reduce_into(DType dtype, ReduceOp op, void* into, const void* from, std::size_t count);
/// into[i] /= divisor, for floating types.
void divide(DType dtype, void* into, std::size_t count, int divisor);

}  // namespace levin::distributed
