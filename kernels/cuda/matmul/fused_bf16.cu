// The fused products of bfloat16, in their own translation unit.

#include "kernels/cuda/matmul/fused.cuh"

namespace levin::kernels::cuda {

template void run_fused<Relu, __nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);
template void run_fused<Gelu, __nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);

}  // namespace levin::kernels::cuda
