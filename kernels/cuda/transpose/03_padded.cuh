#pragma once
// Rung 3: a padded tile.
// Idea: with rows 33 elements apart, a tile's column passes through all banks. Changes against rung 2: one number.
// Bound: global memory for elements of 4 and 8 bytes; smaller ones use only part of each bank and of each line of
// memory.

#include "kernels/cuda/transpose/02_shared_tile.cuh"

namespace levin::kernels::cuda {

template <class T>
__global__ void __launch_bounds__(256) transpose_padded(TransposeProblem p) {
  transpose_through<T, kTransposeSide + 1>(p);
}

template <class T>
void run_transpose_padded(TransposeProblem p, const Stream& stream) {
  const auto tiles = static_cast<unsigned>(p.cut(kTransposeSide));
  launch(transpose_padded<T>, {.grid = tiles, .block = 256, .stream = stream}, p);
}

}  // namespace levin::kernels::cuda
