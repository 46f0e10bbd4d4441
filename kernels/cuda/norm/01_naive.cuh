#pragma once
// Rung 1: three passes.
// Idea: one block per row; the mean, the squares and the result each read the row from global memory. Ships for rows
// that fit nowhere else. Bound: the second and third pass, which miss the cache for long rows.

#include "kernels/cuda/norm/layer_rows.cuh"

namespace levin::kernels::cuda {

template <class T>
__global__ void layer_norm_naive(LayerRows<T> l) {
  using C = ComputeType<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  const T* const x = l.x + row * l.n;
  double sum = 0.0, squares = 0.0;
  for (std::int64_t i = thread; i < l.n; i += kLayerThreads) sum += convert<double>(x[i]);
  const double average = block_reduce(sum, Plus{}, 0.0) / static_cast<double>(l.n);
  const C mean = static_cast<C>(average);
  for (std::int64_t i = thread; i < l.n; i += kLayerThreads) {
    const C centred = convert<C>(x[i]) - mean;
    squares += static_cast<double>(centred * centred);
  }
  const double rstd = l.rstd_of(block_reduce(squares, Plus{}, 0.0));
  for (std::int64_t i = thread; i < l.n; i += kLayerThreads) {
    l.y[row * l.n + i] = l.result(x[i], i, mean, static_cast<C>(rstd));
  }
  if (thread == 0) l.store_statistics(row, average, rstd);
}

template <class T>
void run_layer_norm_naive(const LayerRows<T>& l, Stream& stream) {
  launch(layer_norm_naive<T>, {.grid = static_cast<unsigned>(l.rows), .block = kLayerThreads, .stream = stream}, l);
}

}  // namespace levin::kernels::cuda
