// The shipping rung of float32, in its own translation unit.

#include "kernels/cuda/sgemm/sgemm.cuh"

namespace levin::kernels::cuda {

template void run_sgemm_async_stages<Identity>(const Problem<float>&, Stream&);

}  // namespace levin::kernels::cuda
