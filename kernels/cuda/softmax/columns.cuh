#pragma once
// Softmax along an axis other than the last, of x (outer, n, inner): a warp takes 32 neighbouring lines, and the eight
// warps of a block share their elements.

#include "kernels/cuda/softmax/03_online.cuh"

namespace levin::kernels::cuda {

inline constexpr int kColumnRows = kSoftmaxThreads / 32;

/// A thread's line, and its elements of the line (row, row + kColumnRows, ...).
struct ColumnPlace {
  bool valid;
  int column, row;
  std::int64_t first, step;  ///< offset of the line's first element, and its stride

  __device__ ColumnPlace(std::int64_t outer, std::int64_t n, std::int64_t inner)
      : column(static_cast<int>(threadIdx.x) % 32), row(static_cast<int>(threadIdx.x) / 32), step(inner) {
    const std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * 32 + column;
    valid = line < outer * inner;
    first = valid ? line / inner * n * inner + line % inner : 0;
  }
};

inline LaunchConfig column_blocks(std::int64_t lines, Stream& stream) {
  return {.grid = static_cast<unsigned>(ceil_div(lines, 32)), .block = kSoftmaxThreads, .stream = stream};
}

template <class T, bool log>
__global__ void softmax_columns(const T* x, T* out, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  using C = ComputeType<T>;
  using S = WideSum<T>;
  LEVIN_SHARED(C, tops, kColumnRows, 32);
  LEVIN_SHARED(S, sums, kColumnRows, 32);
  const ColumnPlace place(outer, n, inner);
  OnlineSum<C, S> own;
  if (place.valid) {
    for (std::int64_t i = place.row; i < n; i += kColumnRows) own.add(convert<C>(x[place.first + i * place.step]));
  }
  tops[place.row][place.column] = own.top;
  sums[place.row][place.column] = own.sum;
  __syncthreads();
  if (!place.valid) return;
  OnlineSum<C, S> all;
  for (int r = 0; r < kColumnRows; ++r) {
    OnlineSum<C, S> other;
    other.top = tops[r][place.column];
    other.sum = sums[r][place.column];
    all.add(other);
  }
  const C last = last_of<log, C>(all.sum);
  for (std::int64_t i = place.row; i < n; i += kColumnRows) {
    const std::int64_t at = place.first + i * place.step;
    out[at] = convert<T>(softmax_of<log>(convert<C>(x[at]), all.top, last));
  }
}

}  // namespace levin::kernels::cuda
