// The shipping rung of bfloat16, in its own translation unit.

#include "kernels/cuda/hgemm/hgemm.cuh"

namespace levin::kernels::cuda {

template void run_hgemm_persistent<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);

}  // namespace levin::kernels::cuda
