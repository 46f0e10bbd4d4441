// The fused products of float16, in their own translation unit.

#include "kernels/cuda/matmul/fused.cuh"

namespace levin::kernels::cuda {

template void run_fused<Relu, __half>(const Problem<__half>&, Stream&);
template void run_fused<Gelu, __half>(const Problem<__half>&, Stream&);

}  // namespace levin::kernels::cuda
