#pragma once
// Rung 2: the row in shared memory.
// Idea: the first pass copies the row to shared memory, where the other two read it. Changes against rung 1: global
// memory is read once for rows of any length up to 160 KiB. Bound: shared memory is read three times, and long rows
// leave room for few blocks.

#include "kernels/cuda/norm/layer_rows.cuh"

namespace levin::kernels::cuda {

inline constexpr std::int64_t kMostSharedRow = 160 * 1024;  ///< in bytes; a block of sm_80 has 163 KiB

template <class T>
__global__ void layer_norm_shared_row(LayerRows<T> l) {
  using C = ComputeType<T>;
  T* const values = dynamic_shared<T>();  // (n); each thread reads only elements that it wrote itself
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  double sum = 0.0, squares = 0.0;
  for (std::int64_t i = thread; i < l.n; i += kLayerThreads) {
    values[i] = l.x[row * l.n + i];
    sum += convert<double>(values[i]);
  }
  const double average = block_reduce(sum, Plus{}, 0.0) / static_cast<double>(l.n);
  const C mean = static_cast<C>(average);
  for (std::int64_t i = thread; i < l.n; i += kLayerThreads) {
    const C centred = convert<C>(values[i]) - mean;
    squares += static_cast<double>(centred * centred);
  }
  const double rstd = l.rstd_of(block_reduce(squares, Plus{}, 0.0));
  for (std::int64_t i = thread; i < l.n; i += kLayerThreads) {
    l.y[row * l.n + i] = l.result(values[i], i, mean, static_cast<C>(rstd));
  }
  if (thread == 0) l.store_statistics(row, average, rstd);
}

template <class T>
void run_layer_norm_shared_row(const LayerRows<T>& l, Stream& stream) {
  launch(layer_norm_shared_row<T>,
         {.grid = static_cast<unsigned>(l.rows),
          .block = kLayerThreads,
          .shared = static_cast<std::size_t>(l.n) * sizeof(T),
          .stream = stream},
         l);
}

}  // namespace levin::kernels::cuda
