#pragma once
// Parts of the formulas of activations, as device code.

#include "kernels/cuda/elementwise/math.cuh"

#include <numbers>

namespace levin::kernels::cuda::elementwise {

#define LEVIN_FORMULA_FUNCTION __device__ inline
#include "kernels/src/formulas.inc"
#undef LEVIN_FORMULA_FUNCTION

}  // namespace levin::kernels::cuda::elementwise
