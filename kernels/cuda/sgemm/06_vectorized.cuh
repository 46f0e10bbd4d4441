#pragma once
// Rung 6: 16 bytes per instruction.
// Idea: global memory is read, shared memory read and C written four numbers at a time. For this A is stored transposed
// in shared memory, so that a thread's eight rows are neighbours. Changes against rung 5: a quarter of the memory
// instructions. Needs rows that begin at multiples of 16 bytes. Bound: bank conflicts and the latency of global memory.

#include "kernels/cuda/matmul/epilogue.cuh"
#include "kernels/cuda/sgemm/fill.cuh"

namespace levin::kernels::cuda {

/// values[0, 4 * Count) = from[0, 4), from[stride, stride + 4), ... of shared memory
template <int Count>
__device__ inline void load_fours(float (&values)[4 * Count], const float* from, int stride) {
  LEVIN_PRAGMA_UNROLL
  for (int v = 0; v < Count; ++v) {
    const auto four = pack_at<4>(from + v * stride);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 4; ++i) values[4 * v + i] = four[i];
  }
}

/// sums (Rows, Columns) += a (Rows) b (Columns)
template <int Rows, int Columns>
__device__ inline void outer_product(float (&sums)[Rows][Columns], const float (&a)[Rows], const float (&b)[Columns]) {
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < Rows; ++i) {
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < Columns; ++j) sums[i][j] += a[i] * b[j];
  }
}

/// A row of a thread's sums: groups of four neighbours, `stride` columns apart.
template <int Columns, class Out>
__device__ inline void write_fours(const Out& out, const TilePlace& place, int row, int column, int stride,
                                   const float (&sums)[Columns]) {
  LEVIN_PRAGMA_UNROLL
  for (int v = 0; v < Columns / 4; ++v) {
    const float four[4] = {sums[4 * v], sums[4 * v + 1], sums[4 * v + 2], sums[4 * v + 3]};
    out.write(place, row, column + v * stride, four);
  }
}

/// Tiles of 128 x 128, 8 deep; 256 threads.
template <class T>
__global__ void __launch_bounds__(256) sgemm_vectorized(Problem<T> p, Epilogue<T> out, TileGrid grid) {
  constexpr int kTile = 128, kDepth = 8, kSide = 8, kThreads = 256;
  LEVIN_SHARED(float4, a_packs, kDepth * kTile / 4);  // (k, row)
  LEVIN_SHARED(float4, b_packs, kDepth * kTile / 4);  // (k, column)
  float *a_tile = reinterpret_cast<float*>(a_packs), *b_tile = reinterpret_cast<float*>(b_packs);
  const TilePlace place = grid.at(blockIdx.x);
  const int first_row = place.row * kTile, first_column = place.column * kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / (kTile / kSide) * kSide, column = thread % (kTile / kSide) * kSide;
  const TileSource<T> a(p.a, place.batch, first_row, p.m, p.k), b(p.b, place.batch, first_column, p.n, p.k);
  float sums[kSide][kSide] = {};
  for (std::int64_t k = 0; k < p.k; k += kDepth) {
    fill_vectors<kTile, kDepth, kThreads>(a_tile, kTile, a, k);
    fill_vectors<kTile, kDepth, kThreads>(b_tile, kTile, b, k);
    __syncthreads();
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < kDepth; ++s) {
      float a_values[kSide], b_values[kSide];
      load_fours<2>(a_values, a_tile + s * kTile + row, 4);
      load_fours<2>(b_values, b_tile + s * kTile + column, 4);
      outer_product(sums, a_values, b_values);
    }
    __syncthreads();
  }
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < kSide; ++i) write_fours(out, place, first_row + row + i, first_column + column, 4, sums[i]);
}

template <class T>
void run_sgemm_vectorized(const Problem<T>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, 128, 128, 8);
  launch(sgemm_vectorized<T>, {.grid = static_cast<unsigned>(grid.count()), .block = 256, .stream = stream}, p,
         Epilogue<T>(p), grid);
}

}  // namespace levin::kernels::cuda
