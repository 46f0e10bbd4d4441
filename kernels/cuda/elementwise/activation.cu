// Activations.

#include "kernels/cuda/elementwise/activation.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

LEVIN_FORMULA(LeakyRelu, x > C(0) ? x : x * p.p0)
LEVIN_FORMULA(Elu, x > C(0) ? x : p.p0 * math::expm1(x))
LEVIN_FORMULA(Gelu, normal_cdf(x) * x)
LEVIN_FORMULA(GeluTanh, C(0.5) * x * (C(1) + tanh_of_gelu(x)))  // half + half * tanh would lose the sign of -0
LEVIN_FORMULA(Silu, x / (C(1) + math::exp(-x)))
LEVIN_FORMULA(Softplus, p.p0* x > p.p1 ? x : math::log1p(math::exp(p.p0 * x)) / p.p0)
LEVIN_FORMULA(Logsigmoid, (x < C(0) ? x : C(0)) - math::log1p(math::exp(-math::fabs(x))))

}  // namespace elementwise

LEVIN_UNARY(leaky_relu, LeakyRelu, floating)
LEVIN_UNARY(elu, Elu, floating)
LEVIN_UNARY(gelu, Gelu, floating)
LEVIN_UNARY(gelu_tanh, GeluTanh, floating)
LEVIN_UNARY(silu, Silu, floating)
LEVIN_UNARY(softplus, Softplus, floating)
LEVIN_UNARY(logsigmoid, Logsigmoid, floating)

}  // namespace levin::kernels::cuda
