#pragma once
// The ladder of products of 16-bit floats, added up in float.

#include "kernels/cuda/matmul/ladder.h"

#include <span>

namespace levin::kernels::cuda {

/// All compute the same product of float16 or bfloat16 matrices.
std::span<const MatmulRung> hgemm_rungs();

}  // namespace levin::kernels::cuda
