#pragma once
// Rung 3: tiles in shared memory.
// Idea: a block computes a square tile of C; it copies a tile of A and one of B to shared memory, from where each
// number is read Side times. Changes against rung 2: Side times fewer reads of global memory. Bound: shared memory, as
// each multiply-add loads two numbers from it. With 16 x 16 it serves double and the integers, for
// which there are no further rungs.

#include "kernels/cuda/matmul/epilogue.cuh"
#include "kernels/cuda/sgemm/fill.cuh"

namespace levin::kernels::cuda {

/// Side * Side threads compute one element of C each. Blocks loop over the tiles, however many there are.
template <class T, int Side>
__global__ void __launch_bounds__(Side* Side) gemm_shared_tile(Problem<T> p, Epilogue<T> out, TileGrid grid) {
  LEVIN_SHARED(T, a_tile, Side, Side + 1);  // (row, k)
  LEVIN_SHARED(T, b_tile, Side, Side + 1);  // (k, column)
  const int row = static_cast<int>(threadIdx.x) / Side, column = static_cast<int>(threadIdx.x) % Side;
  for (std::int64_t index = blockIdx.x; index < grid.count(); index += gridDim.x) {
    const TilePlace place = grid.at(index);
    const std::int64_t first_row = static_cast<std::int64_t>(place.row) * Side;
    const std::int64_t first_column = static_cast<std::int64_t>(place.column) * Side;
    const TileSource<T> a(p.a, place.batch, first_row, p.m, p.k), b(p.b, place.batch, first_column, p.n, p.k);
    Sum<T> sum[1] = {};
    for (std::int64_t k = 0; k < p.k; k += Side) {
      fill_tile<Side, Side, Side * Side>(&a_tile[0][0], Side + 1, 1, a, k);
      fill_tile<Side, Side, Side * Side>(&b_tile[0][0], 1, Side + 1, b, k);
      __syncthreads();
      LEVIN_PRAGMA_UNROLL
      for (int s = 0; s < Side; ++s) sum[0] += convert<Sum<T>>(a_tile[row][s]) * convert<Sum<T>>(b_tile[s][column]);
      __syncthreads();
    }
    out.write(place, first_row + row, first_column + column, sum);
  }
}

template <class T, int Side>
void run_gemm_shared_tile(const Problem<T>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, Side, Side, Side);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(grid.count(), 0x7fffffff));
  launch(gemm_shared_tile<T, Side>, {.grid = blocks, .block = Side * Side, .stream = stream}, p, Epilogue<T>(p), grid);
}

}  // namespace levin::kernels::cuda
