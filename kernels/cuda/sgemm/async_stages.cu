// The shipping rung of float32, a compile unit of its own.

#include "kernels/cuda/sgemm/sgemm.cuh"

namespace levin::kernels::cuda {

template void run_sgemm_async_stages<Identity>(const Problem<float>&, Stream&);

}  // namespace levin::kernels::cuda
