#pragma once
// Rung 5: loads of 16 bytes.
// Idea: a thread's elements are packs of 16 bytes: four floats or eight halves. Changes against rung 4: a quarter or an
// eighth of the memory instructions, and as many times more bytes in flight. Needs rows that begin at multiples of 16
// bytes. Ships for long rows. Bound: memory bandwidth; in short rows the two barriers.

#include "kernels/cuda/softmax/04_registers.cuh"

namespace levin::kernels::cuda {

template <class T>
inline constexpr int kVectorWidth = 16 / static_cast<int>(sizeof(T));

/// True if all rows begin at multiples of 16 bytes.
template <class T>
bool rows_are_aligned(const SoftmaxRows<T>& s) {
  return s.n % kVectorWidth<T> == 0 && reinterpret_cast<std::uintptr_t>(s.x) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(s.out) % 16 == 0;
}

template <class T, int kElements, bool log>
__global__ void __launch_bounds__(kMostSoftmaxThreads) softmax_vectors(SoftmaxRows<T> s) {
  constexpr int kWidth = kVectorWidth<T>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  softmax_in_registers<BlockGroup, T, kWidth, kElements / kWidth, log>(s.x + row * s.n, s.out + row * s.n,
                                                                       static_cast<int>(s.n));
}

template <class T, bool log>
void run_softmax_vectors(const SoftmaxRows<T>& s, Stream& stream) {
  const int threads = softmax_threads<T>(s.n), elements = softmax_elements(s.n, threads);
  const auto kernel = elements == 8    ? softmax_vectors<T, 8, log>
                      : elements == 16 ? softmax_vectors<T, 16, log>
                                       : softmax_vectors<T, kMostSoftmaxElements<T>, log>;
  launch(kernel, {.grid = static_cast<unsigned>(s.rows), .block = static_cast<unsigned>(threads), .stream = stream}, s);
}

}  // namespace levin::kernels::cuda
