#pragma once
// Rung 1: one thread per element.
// Idea: the definition. The threads of a warp run down a column of C, as they would if the first thread index were used
// for the first dimension. Bound: memory transactions; if A is row-major, each load of a warp touches 32 rows, and so
// does each store.

#include "kernels/cuda/matmul/epilogue.cuh"

namespace levin::kernels::cuda {

template <class T, class Out>
__device__ void dot_product(const Problem<T>& p, const Out& out, const TilePlace& place, std::int64_t row,
                            std::int64_t column) {
  if (row >= p.m || column >= p.n) return;
  const T *a = p.a.of(place.batch) + row * p.a.line, *b = p.b.of(place.batch) + column * p.b.line;
  Sum<T> sum[1] = {};
  for (std::int64_t k = 0; k < p.k; ++k) sum[0] += convert<Sum<T>>(a[k * p.a.step]) * convert<Sum<T>>(b[k * p.b.step]);
  out.write(place, row, column, sum);
}

/// Tiles of 32 rows and 8 columns; 256 threads.
template <class T>
__global__ void gemm_naive(Problem<T> p, Epilogue<T> out, TileGrid grid) {
  const TilePlace place = grid.at(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  dot_product(p, out, place, place.row * 32 + thread % 32, place.column * 8 + thread / 32);
}

template <class T>
void run_gemm_naive(const Problem<T>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, 32, 8, 1);
  launch(gemm_naive<T>, {.grid = static_cast<unsigned>(grid.count()), .block = 256, .stream = stream}, p,
         Epilogue<T>(p), grid);
}

}  // namespace levin::kernels::cuda
