#pragma once
// Rung 2: neighbours in a warp are neighbours in memory.
// Idea: the threads of a warp run along a row of C, so that a warp reads one row of B, 128 bytes at once, and one value
// of A for all. Changes against rung 1: two indices. Bound: the cache's bandwidth; every product still loads two
// numbers.

#include "kernels/cuda/sgemm/01_naive.cuh"

namespace levin::kernels::cuda {

/// Tiles of 8 rows and 32 columns; 256 threads.
template <class T>
__global__ void gemm_coalesced(Problem<T> p, Epilogue<T> out, TileGrid grid) {
  const TilePlace place = grid.at(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  dot_product(p, out, place, place.row * 8 + thread / 32, place.column * 32 + thread % 32);
}

template <class T>
void run_gemm_coalesced(const Problem<T>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, 8, 32, 1);
  launch(gemm_coalesced<T>, {.grid = static_cast<unsigned>(grid.count()), .block = 256, .stream = stream}, p,
         Epilogue<T>(p), grid);
}

}  // namespace levin::kernels::cuda
