#pragma once
// Rung 7: warp tiles.
// Idea: the eight warps divide the block's tile into 64 x 32; within it a lane owns separate groups of four rows and
// four columns, so that the lanes' reads of 16 bytes are neighbours. Changes against rung 6: a warp reads 64 + 32
// numbers of shared memory per step instead of 16 + 128, without bank conflicts. Bound: the latency of global memory
// between the barriers.

#include "kernels/cuda/sgemm/06_vectorized.cuh"

namespace levin::kernels::cuda {

/// Assigns elements of a tile of M x N to threads: warps own (32 RowGroups, 16 ColumnGroups); a lane owns RowGroups
/// times four rows, 32 apart, and ColumnGroups times four columns, 16 apart.
template <int M, int N, int RowGroups, int ColumnGroups>
struct WarpTiles {
  static constexpr int kRowsApart = 32, kColumnsApart = 16;
  static constexpr int kWarpsAcross = N / (16 * ColumnGroups);
  static constexpr int kThreads = M / (32 * RowGroups) * kWarpsAcross * 32;
  static constexpr int kRows = 4 * RowGroups, kColumns = 4 * ColumnGroups;
  int row, column;  ///< of the lane's first element

  __device__ WarpTiles() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    row = warp / kWarpsAcross * 32 * RowGroups + lane / 4 * 4;
    column = warp % kWarpsAcross * 16 * ColumnGroups + lane % 4 * 4;
  }

  /// sums += one step of k; its rows of A and columns of B lie at a and b.
  __device__ void multiply(float (&sums)[kRows][kColumns], const float* a, const float* b) const {
    float a_values[kRows], b_values[kColumns];
    load_fours<RowGroups>(a_values, a + row, kRowsApart);
    load_fours<ColumnGroups>(b_values, b + column, kColumnsApart);
    outer_product(sums, a_values, b_values);
  }

  template <class Out>
  __device__ void write(const Out& out, const TilePlace& place, int first_row, int first_column,
                        const float (&sums)[kRows][kColumns]) const {
    LEVIN_PRAGMA_UNROLL
    for (int v = 0; v < ColumnGroups; ++v) {
      const auto columns = columns_of<4>(out, place, first_column + column + v * kColumnsApart);
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const float four[4] = {sums[i][4 * v], sums[i][4 * v + 1], sums[i][4 * v + 2], sums[i][4 * v + 3]};
        columns.write(first_row + row + i / 4 * kRowsApart + i % 4, four);
      }
    }
  }
};

/// Tiles of 128 x 128, 8 deep; 256 threads.
template <class T>
__global__ void __launch_bounds__(256) sgemm_warp_tiles(Problem<T> p, Epilogue<T> out, TileGrid grid) {
  constexpr int kTile = 128, kDepth = 8, kThreads = 256;
  LEVIN_SHARED(float4, a_packs, kDepth * kTile / 4);  // (k, row)
  LEVIN_SHARED(float4, b_packs, kDepth * kTile / 4);  // (k, column)
  float *a_tile = reinterpret_cast<float*>(a_packs), *b_tile = reinterpret_cast<float*>(b_packs);
  const TilePlace place = grid.at(blockIdx.x);
  const int first_row = place.row * kTile, first_column = place.column * kTile;
  const WarpTiles<kTile, kTile, 2, 2> own;
  const TileSource<T> a(p.a, place.batch, first_row, p.m, p.k), b(p.b, place.batch, first_column, p.n, p.k);
  float sums[8][8] = {};
  for (std::int64_t k = 0; k < p.k; k += kDepth) {
    fill_vectors<kTile, kDepth, kThreads>(a_tile, kTile, a, k);
    fill_vectors<kTile, kDepth, kThreads>(b_tile, kTile, b, k);
    __syncthreads();
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < kDepth; ++s) own.multiply(sums, a_tile + s * kTile, b_tile + s * kTile);
    __syncthreads();
  }
  own.write(out, place, first_row, first_column, sums);
}

template <class T>
void run_sgemm_warp_tiles(const Problem<T>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, 128, 128, 8);
  launch(sgemm_warp_tiles<T>, {.grid = static_cast<unsigned>(grid.count()), .block = 256, .stream = stream}, p,
         Epilogue<T>(p), grid);
}

}  // namespace levin::kernels::cuda
