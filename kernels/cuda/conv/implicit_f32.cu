// The shipping rung of float32, a compile unit of its own.

#include "kernels/cuda/conv/rungs.cuh"

namespace levin::kernels::cuda {

template struct ImplicitConv<float, FloatProduct>;

}  // namespace levin::kernels::cuda
