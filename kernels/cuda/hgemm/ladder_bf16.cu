// The rungs of bfloat16 that do not ship, in their own translation unit.

#include "kernels/cuda/hgemm/rungs.cuh"

namespace levin::kernels::cuda {

template struct HalfRungs<__nv_bfloat16>;

}  // namespace levin::kernels::cuda
