#pragma once
// Rung 6: one warp per row.
// Idea: one warp computes a short row, without shared memory or a barrier. Changes against rung 5: a block holds four
// rows, and no thread waits for another row. Ships for rows of at most 1024 elements (512 doubles). Bound: memory
// bandwidth; in rows of a few elements idle lanes.

#include "kernels/cuda/softmax/05_vectors.cuh"

namespace levin::kernels::cuda {

inline constexpr int kWarpRowThreads = 128;
template <class T>
inline constexpr std::int64_t kMostWarpRow = 32 * kMostSoftmaxElements<T>;

template <class T, int kWidth, int kElements, bool log>
__global__ void __launch_bounds__(kWarpRowThreads) softmax_warp_a_row(SoftmaxRows<T> s) {
  const std::int64_t row = WarpGroup::number();
  if (row >= s.rows) return;
  softmax_in_registers<WarpGroup, T, kWidth, kElements / kWidth, log>(s.x + row * s.n, s.out + row * s.n,
                                                                      static_cast<int>(s.n));
}

template <class T, int kWidth, bool log>
void launch_softmax_warps(const SoftmaxRows<T>& s, Stream& stream) {
  const int elements = softmax_elements(s.n, 32);
  const auto kernel = elements == 8    ? softmax_warp_a_row<T, kWidth, 8, log>
                      : elements == 16 ? softmax_warp_a_row<T, kWidth, 16, log>
                                       : softmax_warp_a_row<T, kWidth, kMostSoftmaxElements<T>, log>;
  const auto blocks = static_cast<unsigned>(ceil_div(s.rows * 32, kWarpRowThreads));
  launch(kernel, {.grid = blocks, .block = kWarpRowThreads, .stream = stream}, s);
}

template <class T, bool log>
void run_softmax_warp_a_row(const SoftmaxRows<T>& s, Stream& stream) {
  if (rows_are_aligned(s)) {
    launch_softmax_warps<T, kVectorWidth<T>, log>(s, stream);
  } else {
    launch_softmax_warps<T, 1, log>(s, stream);
  }
}

}  // namespace levin::kernels::cuda
