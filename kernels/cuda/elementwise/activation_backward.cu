// Gradients of activations: a is the gradient of the output, b the input or, where said, the output.

#include "kernels/cuda/elementwise/activation.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

LEVIN_FORMULA_2(ReluBackward, b <= C(0) ? C(0) : a)
LEVIN_FORMULA_2(LeakyReluBackward, b > C(0) ? a : a * p.p0)
LEVIN_FORMULA_2(ClampBackward, b >= p.p0 && b <= p.p1 ? a : C(0))
LEVIN_FORMULA_2(EluBackward, b > C(0) ? a : a * (p.p0 * math::exp(b)))
LEVIN_FORMULA_2(SigmoidBackward, (C(1) - b) * b * a)       // of the output
LEVIN_FORMULA_2(TanhBackward, math::fma(-b, b, C(1)) * a)  // of the output
LEVIN_FORMULA_2(SoftplusBackward, p.p0* b > p.p1 ? a : math::sigmoid(p.p0 * b) * a)
LEVIN_FORMULA_2(LogsigmoidBackward, math::sigmoid(-b) * a)

struct GeluBackward {
  template <class C>
  static __device__ C call(C grad, C x, const Parameters<C>&) {
    const C density = C(kDensity) * math::exp(x * x * C(-0.5));
    return grad * math::fma(x, density, normal_cdf(x));
  }
};
struct GeluTanhBackward {
  template <class C>
  static __device__ C call(C grad, C x, const Parameters<C>&) {
    const C t = tanh_of_gelu(x);
    const C inner = C(kTanhScale) * math::fma(C(3.0 * kTanhCubic), x * x, C(1));
    const C slope = math::fma(-t, t, C(1)) * inner;
    return grad * (C(0.5) * math::fma(x, slope, C(1) + t));
  }
};
struct SiluBackward {
  template <class C>
  static __device__ C call(C grad, C x, const Parameters<C>&) {
    const C s = math::sigmoid(x);
    return grad * (s * math::fma(x, C(1) - s, C(1)));
  }
};

}  // namespace elementwise

LEVIN_BINARY(relu_backward, ReluBackward, floating)
LEVIN_BINARY(leaky_relu_backward, LeakyReluBackward, floating)
LEVIN_BINARY(clamp_backward, ClampBackward, floating)
LEVIN_BINARY(elu_backward, EluBackward, floating)
LEVIN_BINARY(gelu_backward, GeluBackward, floating)
LEVIN_BINARY(gelu_tanh_backward, GeluTanhBackward, floating)
LEVIN_BINARY(silu_backward, SiluBackward, floating)
LEVIN_BINARY(sigmoid_backward, SigmoidBackward, floating)
LEVIN_BINARY(tanh_backward, TanhBackward, floating)
LEVIN_BINARY(softplus_backward, SoftplusBackward, floating)
LEVIN_BINARY(logsigmoid_backward, LogsigmoidBackward, floating)

}  // namespace levin::kernels::cuda
