// The kernel for operands that 16-byte copies cannot move, in its own translation unit.

#include "kernels/cuda/hgemm/hgemm.cuh"

namespace levin::kernels::cuda {

template void run_hgemm_any_operand<__half>(const Problem<__half>&, Stream&);
template void run_hgemm_any_operand<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);

}  // namespace levin::kernels::cuda
