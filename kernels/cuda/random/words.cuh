#pragma once
// Random words by element: a thread computes a whole Philox block and the elements that use its four words. The numbers
// equal the CPU's bit for bit, so sums and products that the CPU rounds separately are not fused here.

#include "kernels/cuda/base/launch.h"

#include <levin/core/generator.h>

namespace levin::kernels::cuda::random {

struct Words {
  std::uint32_t values[4];
  __device__ std::uint32_t operator[](int i) const { return values[i]; }
};

/// Returns the counter of a kernel's first Philox block.
__device__ inline GeneratorState begin_of(const PhiloxState& state) {
  if (!state.base) return {state.seed, state.offset};
  return {state.base->seed, state.base->offset + state.offset};
}

__device__ inline Words draw(const GeneratorState& state, std::int64_t block) {
  const auto words = philox(state.seed, state.offset + static_cast<std::uint64_t>(block));
  return {{words[0], words[1], words[2], words[3]}};
}

/// Stores (or loads, below) up to Count neighbours, in one access if all exist and `packed` says that their addresses
/// are aligned.
template <class T, int Count>
__device__ inline void store_some(T* p, const T (&values)[Count], std::int64_t left, bool packed) {
  if (packed && left >= Count) {
    Pack<T, Count> pack;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Count; ++i) pack[i] = values[i];
    pack_at<Count>(p) = pack;
  } else {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Count; ++i)
      if (i < left) p[i] = values[i];
  }
}
template <class T, int Count>
__device__ inline void load_some(T (&values)[Count], const T* p, std::int64_t left, bool packed) {
  if (packed && left >= Count) {
    const auto pack = pack_at<Count>(p);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Count; ++i) values[i] = pack[i];
  } else {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Count; ++i) values[i] = i < left ? p[i] : T{};
  }
}

/// True if packs of `count` elements are aligned at all of the addresses.
template <class T>
bool aligned(int count, std::initializer_list<const void*> addresses) {
  for (const void* p : addresses)
    if (reinterpret_cast<std::uintptr_t>(p) % (static_cast<std::size_t>(count) * sizeof(T)) != 0) return false;
  return true;
}

}  // namespace levin::kernels::cuda::random
