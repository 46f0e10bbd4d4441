#pragma once
// Rung 3: the row in registers.
// Idea: a thread keeps its elements in an array with indices known at compile time; a short row is computed by one
// warp, which reduces by shuffles alone. Changes against rung 2: no passes over shared memory, and no barrier for rows
// of up to 1024 elements. Ships for rows that do not begin at multiples of 16 bytes. Bound: loads of 4 bytes per lane.

#include "kernels/cuda/norm/layer_rows.cuh"

namespace levin::kernels::cuda {

/// Layer norm of a row by a group of at least n / (kWidth * kPacks) threads. Pack p of thread r holds kWidth neighbours
/// from (p * threads + r) * kWidth; with kWidth above 1, n and the addresses are multiples of it.
template <class Group, class T, int kWidth, int kPacks>
__device__ inline void layer_norm_in_registers(const LayerRows<T>& l, std::int64_t row) {
  using Elements = Pack<T, kWidth>;
  using C = ComputeType<T>;
  const int n = static_cast<int>(l.n), first = Group::rank() * kWidth, step = Group::size() * kWidth;
  Elements values[kPacks];
  double sum = 0.0, squares = 0.0;
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    if (first + p * step < n) values[p] = vector_at<Elements>(l.x + row * l.n + first + p * step);
  }
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    if (first + p * step >= n) continue;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) sum += convert<double>(values[p][i]);
  }
  const double average = Group::reduce(sum, Plus{}, 0.0) / static_cast<double>(n);
  const C mean = static_cast<C>(average);
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    if (first + p * step >= n) continue;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const C centred = convert<C>(values[p][i]) - mean;
      squares += static_cast<double>(centred * centred);
    }
  }
  const double rstd = l.rstd_of(Group::reduce(squares, Plus{}, 0.0));
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int at = first + p * step;
    if (at >= n) continue;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) values[p][i] = l.result(values[p][i], at + i, mean, static_cast<C>(rstd));
    vector_at<Elements>(l.y + row * l.n + at) = values[p];
  }
  if (Group::rank() == 0) l.store_statistics(row, average, rstd);
}

inline constexpr int kMostLayerThreads = 512, kLayerWarps = 128;  ///< with one row per block, and per warp
/// Maximum number of elements per thread.
template <class T>
inline constexpr int kMostLayerElements = sizeof(T) == 8 ? 16 : 32;
template <class T>
inline constexpr std::int64_t kMostLayerRow = std::int64_t{kMostLayerThreads} * kMostLayerElements<T>;

template <class Group, class T, int kWidth, int kElements>
__global__ void __launch_bounds__(std::is_same_v<Group, WarpGroup> ? kLayerWarps : kMostLayerThreads)
    layer_norm_registers(LayerRows<T> l) {
  const std::int64_t row = Group::number();
  if (row >= l.rows) return;  // only for warps: a block always has a row
  layer_norm_in_registers<Group, T, kWidth, kElements / kWidth>(l, row);
}

template <class T, int kWidth>
void launch_layer_registers(const LayerRows<T>& l, Stream& stream) {
  constexpr int kMost = kMostLayerElements<T>;
  if (l.n <= 32 * kMost) {
    const auto kernel = l.n <= 32 * 8    ? layer_norm_registers<WarpGroup, T, kWidth, 8>
                        : l.n <= 32 * 16 ? layer_norm_registers<WarpGroup, T, kWidth, 16>
                                         : layer_norm_registers<WarpGroup, T, kWidth, kMost>;
    const auto blocks = static_cast<unsigned>(ceil_div(l.rows * 32, kLayerWarps));
    return launch(kernel, {.grid = blocks, .block = kLayerWarps, .stream = stream}, l);
  }
  const int threads = l.n <= 256 * kMost ? 256 : kMostLayerThreads;
  const auto kernel = l.n <= threads * 8    ? layer_norm_registers<BlockGroup, T, kWidth, 8>
                      : l.n <= threads * 16 ? layer_norm_registers<BlockGroup, T, kWidth, 16>
                                            : layer_norm_registers<BlockGroup, T, kWidth, kMost>;
  launch(kernel, {.grid = static_cast<unsigned>(l.rows), .block = static_cast<unsigned>(threads), .stream = stream}, l);
}

template <class T>
void run_layer_norm_registers(const LayerRows<T>& l, Stream& stream) {
  launch_layer_registers<T, 1>(l, stream);
}

}  // namespace levin::kernels::cuda
