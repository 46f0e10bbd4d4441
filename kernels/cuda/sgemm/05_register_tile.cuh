#pragma once
// Rung 5: a square of C in each thread's registers.
// Idea: a thread computes 8 x 8 elements as an outer product: 8 numbers of A and 8 of B serve 64 multiply-adds. Changes
// against rung 4: 16 loads for 64 multiply-adds; the tile grows to 128 x 128, which halves the reads of global memory.
// Bound: instructions, as each load moves one number.

#include "kernels/cuda/matmul/epilogue.cuh"
#include "kernels/cuda/sgemm/fill.cuh"

namespace levin::kernels::cuda {

/// Tiles of 128 x 128, 8 deep; 256 threads.
template <class T>
__global__ void __launch_bounds__(256) sgemm_register_tile(Problem<T> p, Epilogue<T> out, TileGrid grid) {
  constexpr int kTile = 128, kDepth = 8, kSide = 8, kThreads = 256;
  LEVIN_SHARED(float, a_tile, kTile, kDepth);  // (row, k)
  LEVIN_SHARED(float, b_tile, kDepth, kTile);  // (k, column)
  const TilePlace place = grid.at(blockIdx.x);
  const int first_row = place.row * kTile, first_column = place.column * kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / (kTile / kSide) * kSide, column = thread % (kTile / kSide) * kSide;
  const TileSource<T> a(p.a, place.batch, first_row, p.m, p.k), b(p.b, place.batch, first_column, p.n, p.k);
  float sums[kSide][kSide] = {};
  for (std::int64_t k = 0; k < p.k; k += kDepth) {
    fill_tile<kTile, kDepth, kThreads>(&a_tile[0][0], kDepth, 1, a, k);
    fill_tile<kTile, kDepth, kThreads>(&b_tile[0][0], 1, kTile, b, k);
    __syncthreads();
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < kDepth; ++s) {
      float a_values[kSide], b_values[kSide];
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kSide; ++i) a_values[i] = a_tile[row + i][s];
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < kSide; ++j) b_values[j] = b_tile[s][column + j];
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kSide; ++i) {
        LEVIN_PRAGMA_UNROLL
        for (int j = 0; j < kSide; ++j) sums[i][j] += a_values[i] * b_values[j];
      }
    }
    __syncthreads();
  }
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < kSide; ++i) {
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < kSide; ++j) {
      const float one[1] = {sums[i][j]};
      out.write(place, first_row + row + i, first_column + column + j, one);
    }
  }
}

template <class T>
void run_sgemm_register_tile(const Problem<T>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, 128, 128, 8);
  launch(sgemm_register_tile<T>, {.grid = static_cast<unsigned>(grid.count()), .block = 256, .stream = stream}, p,
         Epilogue<T>(p), grid);
}

}  // namespace levin::kernels::cuda
