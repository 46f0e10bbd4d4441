// The shipping rung of 16-bit floats, a compile unit of its own.

#include "kernels/cuda/conv/rungs.cuh"

namespace levin::kernels::cuda {

template struct ImplicitConv<__half, HalfProduct<__half>>;
template struct ImplicitConv<__nv_bfloat16, HalfProduct<__nv_bfloat16>>;

}  // namespace levin::kernels::cuda
