// The shipping rungs of float16, in their own translation unit.

#include "kernels/cuda/hgemm/hgemm.cuh"

namespace levin::kernels::cuda {

template void run_hgemm_persistent<__half>(const Problem<__half>&, Stream&);
template void run_hgemm_copy_engine<__half>(const Problem<__half>&, Stream&);
template void run_hgemm<__half>(const Problem<__half>&, Stream&);

}  // namespace levin::kernels::cuda
