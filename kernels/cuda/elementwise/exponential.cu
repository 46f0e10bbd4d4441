// Exponentials and logarithms.

#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

LEVIN_FORMULA(Exp, math::exp(x))
LEVIN_FORMULA(Expm1, math::expm1(x))
LEVIN_FORMULA(Log, math::log(x))
LEVIN_FORMULA(Log2, math::log2(x))
LEVIN_FORMULA(Log10, math::log10(x))
LEVIN_FORMULA(Log1p, math::log1p(x))
LEVIN_FORMULA(Sigmoid, math::sigmoid(x))

}  // namespace elementwise

LEVIN_UNARY(exp, Exp, floating)
LEVIN_UNARY(expm1, Expm1, floating)
LEVIN_UNARY(log, Log, floating)
LEVIN_UNARY(log2, Log2, floating)
LEVIN_UNARY(log10, Log10, floating)
LEVIN_UNARY(log1p, Log1p, floating)
LEVIN_UNARY(sigmoid, Sigmoid, floating)

}  // namespace levin::kernels::cuda
