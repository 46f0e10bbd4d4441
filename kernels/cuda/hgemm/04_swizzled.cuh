#pragma once
// Rung 4: swizzled shared memory.
// Idea: the kernel of rung 3 with the chunks of 16 bytes of each row permuted by the row's index (HalfTile::at). The
// eight rows that ldmatrix reads at once then lie in eight different groups of banks, and so do the eight that a copy
// writes. Changes against rung 3: an exclusive or in each address; no padding, no bank conflicts. Bound: the latency of
// global memory, for which every tile waits.

#include "kernels/cuda/hgemm/03_tensor_cores.cuh"

namespace levin::kernels::cuda {

template <class T>
void run_hgemm_swizzled(const Problem<T>& p, Stream& stream) {
  run_hgemm_tensor_cores<T, true>(p, stream);
}

}  // namespace levin::kernels::cuda
