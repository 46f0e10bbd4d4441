#pragma once
// Every element becomes an unsigned key in the wanted order, with its index in the line. Comparing keys sorts any type,
// and comparing indices breaks ties.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/reduce/ops.cuh"

#include <bit>

namespace levin::kernels::cuda {

template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
template <class T>
inline constexpr int kKeyBits = static_cast<int>(sizeof(T)) * 8;

namespace detail {
template <int bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using type = std::uint8_t;
};
template <>
struct BitsOf<2> {
  using type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using type = std::uint64_t;
};
/// Bits of infinity: larger magnitudes are NaN.
template <class T>
inline constexpr std::uint64_t kInfinityBits = 0;
template <>
inline constexpr std::uint64_t kInfinityBits<double> = 0x7ff0000000000000u;
template <>
inline constexpr std::uint64_t kInfinityBits<float> = 0x7f800000u;
template <>
inline constexpr std::uint64_t kInfinityBits<__half> = 0x7c00u;
template <>
inline constexpr std::uint64_t kInfinityBits<__nv_bfloat16> = 0x7f80u;
}  // namespace detail

/// Returns a key in the order of x: both zeros are equal, NaN is the largest. Its bits beyond kKeyBits<T> are zero.
template <class T>
__device__ inline SortKey<T> key_of(T x) {
  using Bits = typename detail::BitsOf<sizeof(T)>::type;
  constexpr Bits top = static_cast<Bits>(Bits{1} << (sizeof(T) * 8 - 1));
  if constexpr (kIsFloating<T>) {
    const Bits bits = std::bit_cast<Bits>(x), magnitude = static_cast<Bits>(bits & ~top);
    if (magnitude > detail::kInfinityBits<T>) return static_cast<Bits>(~Bits{0});
    if (magnitude == 0) return top;
    return static_cast<Bits>(bits & top ? ~bits : bits | top);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Bits>(static_cast<Bits>(x) ^ top);
  } else {
    return static_cast<Bits>(x);
  }
}

/// Lines (outer, n, inner) of x along n, of which the first k in order are returned.
template <class T>
struct SortLines {
  const T* x;
  T* values;              ///< (outer, k - from, inner)
  std::int64_t* indices;  ///< (outer, k - from, inner)
  std::int64_t lines, n, inner, k;
  SortKey<T> flip;    ///< all bits of a key set for descending order, else 0
  std::int64_t from;  ///< the lowest rank that is stored

  __device__ T element(std::int64_t line, std::int64_t place) const {
    return x[(line / inner * n + place) * inner + line % inner];
  }
  __device__ SortKey<T> key(std::int64_t line, std::int64_t place) const { return key_of(element(line, place)) ^ flip; }
  __device__ void store(std::int64_t line, std::int64_t rank, std::int64_t place) const {
    if (rank < from) return;
    const std::int64_t to = (line / inner * (k - from) + rank - from) * inner + line % inner;
    indices[to] = place;
    values[to] = element(line, place);
  }
};

/// A key with its index, which fits in 32 bits.
template <class Key>
struct SortEntry;
template <>
struct SortEntry<std::uint32_t> {
  std::uint64_t word;
  __device__ static SortEntry make(std::uint32_t key, std::uint32_t place) {
    return {static_cast<std::uint64_t>(key) << 32 | place};
  }
  __device__ std::uint32_t place() const { return static_cast<std::uint32_t>(word); }
  __device__ bool before(const SortEntry& other) const { return word < other.word; }
};
template <>
struct SortEntry<std::uint64_t> {
  std::uint64_t word;
  std::uint32_t at;
  __device__ static SortEntry make(std::uint64_t key, std::uint32_t place) { return {key, place}; }
  __device__ std::uint32_t place() const { return at; }
  __device__ bool before(const SortEntry& other) const {
    return word != other.word ? word < other.word : at < other.at;
  }
};

}  // namespace levin::kernels::cuda
