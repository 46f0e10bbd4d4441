// The rungs of float16 that do not ship, in their own translation unit.

#include "kernels/cuda/hgemm/rungs.cuh"

namespace levin::kernels::cuda {

template struct HalfRungs<__half>;

}  // namespace levin::kernels::cuda
