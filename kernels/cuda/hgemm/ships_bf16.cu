// The shipping rungs of bfloat16, in their own translation unit.

#include "kernels/cuda/hgemm/hgemm.cuh"

namespace levin::kernels::cuda {

template void run_hgemm_persistent<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);
template void run_hgemm_copy_engine<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);
template void run_hgemm<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);

}  // namespace levin::kernels::cuda
