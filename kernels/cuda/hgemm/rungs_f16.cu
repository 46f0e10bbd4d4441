// The rungs of float16 that do not ship, a compile unit of their own.

#include "kernels/cuda/hgemm/rungs.cuh"

namespace levin::kernels::cuda {

template struct HalfRungs<__half>;

}  // namespace levin::kernels::cuda
