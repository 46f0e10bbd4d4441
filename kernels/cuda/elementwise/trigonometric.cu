// Angles, their hyperbolic kin and erf. The accurate functions, not the chip's approximations: memory bounds them all
// in float, and the approximations lose more than the contract allows.

#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

LEVIN_FORMULA(Sin, math::sin(x))
LEVIN_FORMULA(Cos, math::cos(x))
LEVIN_FORMULA(Tan, math::tan(x))
LEVIN_FORMULA(Tanh, math::tanh(x))
LEVIN_FORMULA(Erf, math::erf(x))
LEVIN_FORMULA_2(Atan2, math::atan2(a, b))

}  // namespace elementwise

LEVIN_UNARY(sin, Sin, floating)
LEVIN_UNARY(cos, Cos, floating)
LEVIN_UNARY(tan, Tan, floating)
LEVIN_UNARY(tanh, Tanh, floating)
LEVIN_UNARY(erf, Erf, floating)
LEVIN_BINARY(atan2, Atan2, floating)

}  // namespace levin::kernels::cuda
