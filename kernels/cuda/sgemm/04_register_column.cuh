#pragma once
// Rung 4: several elements of C per thread.
// Idea: a thread computes eight elements of one column, so that a number of B loaded from shared memory serves eight
// multiply-adds. Changes against rung 3: 9 loads for 8 multiply-adds instead of 16. Bound: still shared memory.

#include "kernels/cuda/matmul/epilogue.cuh"
#include "kernels/cuda/sgemm/fill.cuh"

namespace levin::kernels::cuda {

/// Tiles of 64 x 64, 8 deep; 512 threads.
template <class T>
__global__ void __launch_bounds__(512) sgemm_register_column(Problem<T> p, Epilogue<T> out, TileGrid grid) {
  constexpr int kTile = 64, kDepth = 8, kRows = 8, kThreads = 512;
  LEVIN_SHARED(float, a_tile, kTile, kDepth);  // (row, k)
  LEVIN_SHARED(float, b_tile, kDepth, kTile);  // (k, column)
  const TilePlace place = grid.at(blockIdx.x);
  const int first_row = place.row * kTile, first_column = place.column * kTile;
  const int row = static_cast<int>(threadIdx.x) / kTile * kRows, column = static_cast<int>(threadIdx.x) % kTile;
  const TileSource<T> a(p.a, place.batch, first_row, p.m, p.k), b(p.b, place.batch, first_column, p.n, p.k);
  float sums[kRows][1] = {};
  for (std::int64_t k = 0; k < p.k; k += kDepth) {
    fill_tile<kTile, kDepth, kThreads>(&a_tile[0][0], kDepth, 1, a, k);
    fill_tile<kTile, kDepth, kThreads>(&b_tile[0][0], 1, kTile, b, k);
    __syncthreads();
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < kDepth; ++s) {
      const float b_value = b_tile[s][column];
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kRows; ++i) sums[i][0] += a_tile[row + i][s] * b_value;
    }
    __syncthreads();
  }
  for (int i = 0; i < kRows; ++i) out.write(place, first_row + row + i, first_column + column, sums[i]);
}

template <class T>
void run_sgemm_register_column(const Problem<T>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, 64, 64, 8);
  launch(sgemm_register_column<T>, {.grid = static_cast<unsigned>(grid.count()), .block = 512, .stream = stream}, p,
         Epilogue<T>(p), grid);
}

}  // namespace levin::kernels::cuda
