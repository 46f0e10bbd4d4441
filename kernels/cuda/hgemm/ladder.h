#pragma once
// The ladder of products of 16-bit floats, accumulated in float.

#include "kernels/cuda/matmul/ladder.h"

#include <span>

namespace levin::kernels::cuda {

/// All rungs compute the same product of float16 or bfloat16 matrices.
std::span<const MatmulRung> hgemm_rungs();

}  // namespace levin::kernels::cuda
