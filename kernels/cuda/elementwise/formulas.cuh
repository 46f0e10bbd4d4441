#pragma once
// Parts of formulas, as device code.

#include "kernels/cuda/elementwise/math.cuh"

#include <numbers>

namespace levin::kernels::cuda::elementwise {

using integer_math::floored_quotient;
using integer_math::floored_remainder;

#define LEVIN_FORMULA_FUNCTION __device__ inline
#include "kernels/src/formulas.inc"
#undef LEVIN_FORMULA_FUNCTION

}  // namespace levin::kernels::cuda::elementwise
