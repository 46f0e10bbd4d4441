#pragma once
// Rung 1: one element at a time.
// Idea: the definition. The lanes of a warp read 32 neighbours of a row and write them to 32 lines of memory. Bound:
// memory transactions, since each store of a warp touches 32 lines for one element each.

#include "kernels/cuda/transpose/problem.cuh"

namespace levin::kernels::cuda {

inline constexpr int kTransposeSide = 32;  ///< of the tiles of rungs 1 to 3

template <class T>
__global__ void __launch_bounds__(256) transpose_naive(TransposeProblem p) {
  const TransposePlace tile = find_tile(p, kTransposeSide);
  T* out = static_cast<T*>(p.out) + tile.out;
  const T* in = static_cast<const T*>(p.in) + tile.in;
  const std::int64_t column = tile.column + threadIdx.x % kTransposeSide;
  for (int line = static_cast<int>(threadIdx.x) / kTransposeSide; line < kTransposeSide; line += 8) {
    const std::int64_t row = tile.row + line;
    if (row < p.rows && column < p.columns) out[column * p.out_pitch + row] = in[row * p.in_pitch + column];
  }
}

template <class T>
void run_transpose_naive(TransposeProblem p, const Stream& stream) {
  const auto tiles = static_cast<unsigned>(p.cut(kTransposeSide));
  launch(transpose_naive<T>, {.grid = tiles, .block = 256, .stream = stream}, p);
}

}  // namespace levin::kernels::cuda
