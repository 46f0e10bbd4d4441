// Rounding to integers, and roots.

#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

LEVIN_FORMULA(Floor, math::floor(x))
LEVIN_FORMULA(Ceil, math::ceil(x))
LEVIN_FORMULA(Round, math::rint(x))  // half to even
LEVIN_FORMULA(Trunc, math::trunc(x))
LEVIN_FORMULA(Reciprocal, C(1) / x)
LEVIN_FORMULA(Sqrt, math::sqrt(x))
LEVIN_FORMULA(Rsqrt, C(1) / math::sqrt(x))

}  // namespace elementwise

LEVIN_UNARY(floor, Floor, floating)
LEVIN_UNARY(ceil, Ceil, floating)
LEVIN_UNARY(round, Round, floating)
LEVIN_UNARY(trunc, Trunc, floating)
LEVIN_UNARY(reciprocal, Reciprocal, floating)
LEVIN_UNARY(sqrt, Sqrt, floating)
LEVIN_UNARY(rsqrt, Rsqrt, floating)

}  // namespace levin::kernels::cuda
