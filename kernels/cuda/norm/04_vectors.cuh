#pragma once
// Rung 4: loads of 16 bytes.
// Idea: a thread's elements are packs of 16 bytes. Changes against rung 3: a quarter of the memory instructions, and
// four times the bytes in flight. Needs rows that begin at multiples of 16 bytes. Bound: memory bandwidth.

#include "kernels/cuda/norm/03_registers.cuh"

namespace levin::kernels::cuda {

template <class T>
inline constexpr int kLayerWidth = 16 / static_cast<int>(sizeof(T));

template <class T>
bool rows_are_aligned(const LayerRows<T>& l) {
  return l.n % kLayerWidth<T> == 0 && reinterpret_cast<std::uintptr_t>(l.x) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(l.y) % 16 == 0;
}

template <class T>
void run_layer_norm_vectors(const LayerRows<T>& l, Stream& stream) {
  launch_layer_registers<T, kLayerWidth<T>>(l, stream);
}

}  // namespace levin::kernels::cuda
