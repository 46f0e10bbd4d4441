#pragma once
// The ladder of float32 products.

#include "kernels/cuda/matmul/ladder.h"

#include <span>

namespace levin::kernels::cuda {

/// All rungs compute the same product of float32 matrices; the last one rounds the operands to TF32.
std::span<const MatmulRung> sgemm_rungs();

}  // namespace levin::kernels::cuda
