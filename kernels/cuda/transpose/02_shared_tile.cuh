#pragma once
// Rung 2: a tile in shared memory.
// Idea: a block reads a tile (32, 32) row by row and writes it column by column, so that both accesses to global memory
// are coalesced. Changes against rung 1: whole lines in both directions, and one barrier. Bound: shared memory, where
// the 32 elements of a tile's column lie in one bank and are read one after the other.

#include "kernels/cuda/transpose/01_naive.cuh"

namespace levin::kernels::cuda {

/// The tile's lines are `Pitch` elements apart.
template <class T, int Pitch>
__device__ inline void transpose_through(const TransposeProblem& p) {
  LEVIN_SHARED(T, buffer, kTransposeSide, Pitch);  // (row, column)
  const TransposePlace tile = find_tile(p, kTransposeSide);
  T* out = static_cast<T*>(p.out) + tile.out;
  const T* in = static_cast<const T*>(p.in) + tile.in;
  const int lane = static_cast<int>(threadIdx.x) % kTransposeSide;
  const int first = static_cast<int>(threadIdx.x) / kTransposeSide;
  LEVIN_PRAGMA_UNROLL
  for (int line = first; line < kTransposeSide; line += 8) {
    const std::int64_t row = tile.row + line, column = tile.column + lane;
    if (row < p.rows && column < p.columns) buffer[line][lane] = in[row * p.in_pitch + column];
  }
  __syncthreads();
  LEVIN_PRAGMA_UNROLL
  for (int line = first; line < kTransposeSide; line += 8) {
    const std::int64_t row = tile.row + lane, column = tile.column + line;
    if (row < p.rows && column < p.columns) out[column * p.out_pitch + row] = buffer[lane][line];
  }
}

template <class T>
__global__ void __launch_bounds__(256) transpose_shared_tile(TransposeProblem p) {
  transpose_through<T, kTransposeSide>(p);
}

template <class T>
void run_transpose_shared_tile(TransposeProblem p, const Stream& stream) {
  const auto tiles = static_cast<unsigned>(p.cut(kTransposeSide));
  launch(transpose_shared_tile<T>, {.grid = tiles, .block = 256, .stream = stream}, p);
}

}  // namespace levin::kernels::cuda
