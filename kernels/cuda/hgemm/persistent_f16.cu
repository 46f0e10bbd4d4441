// The shipping rung of float16, in its own translation unit.

#include "kernels/cuda/hgemm/hgemm.cuh"

namespace levin::kernels::cuda {

template void run_hgemm_persistent<__half>(const Problem<__half>&, Stream&);

}  // namespace levin::kernels::cuda
