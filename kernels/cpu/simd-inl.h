// Shared by the SIMD kernels; compiled once for each target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>
#include <utility>

#if defined(LEVIN_KERNELS_CPU_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_SIMD_INL_H
#undef LEVIN_KERNELS_CPU_SIMD_INL_H
#else
#define LEVIN_KERNELS_CPU_SIMD_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Simd = hn::ScalableTag<T>;
template <class T>
using SimdVec = hn::Vec<Simd<T>>;
template <class T>
inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Simd<T>{}));

// Masked accesses are exact from AVX2 on; below, Highway's masked accesses touch the whole vector.
#if HWY_TARGET <= HWY_AVX2
inline constexpr bool kExactMasks = true;
#else
inline constexpr bool kExactMasks = false;
#endif

/// Masked stores of AVX2 take many cycles on some processors, and SSE4 has none.
inline constexpr bool kSlowMaskedStores = HWY_TARGET > HWY_AVX3;

/// Loads the first `count` (at most a vector's) elements, with zero in the other lanes; reads nothing else.
template <class T>
HWY_INLINE SimdVec<T> load_part(const T* p, int64_t count) {
  const Simd<T> d;
  if constexpr (kExactMasks) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
  } else {
    HWY_ALIGN T lanes[kLanes<T>] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
    return hn::Load(d, lanes);
  }
}

/// Writes the first `count` lanes and nothing else.
template <class T>
HWY_INLINE void store_part(SimdVec<T> v, T* p, int64_t count) {
  const Simd<T> d;
  if constexpr (kExactMasks) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
  } else {
    HWY_ALIGN T lanes[kLanes<T>];
    hn::Store(v, d, lanes);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
}

/// How many elements ahead kernels prefetch that read and write memory in order: the hardware prefetcher stops at the
/// end of each page of 4 KiB. On a Xeon gelu of tensors of 6 MB that are not in the cache takes 0.65 of the time.
template <class T>
inline constexpr int64_t kStreamAhead = 4096 / static_cast<int64_t>(sizeof(T));

/// False for processors without AVX2, for which the larger programs are not worth it.
inline constexpr bool kPrefetches = HWY_TARGET != HWY_SSE4;

template <class T>
HWY_INLINE void prefetch_to_read([[maybe_unused]] const T* p) {
  if constexpr (kPrefetches) hwy::Prefetch(p);
}
template <class T>
HWY_INLINE void prefetch_to_write([[maybe_unused]] T* p) {
  if constexpr (kPrefetches) __builtin_prefetch(p, 1);
}

/// Reads or writes the elements p[at..] of a vector: all, or the first `count` at the end of a row. streamed() also
/// prefetches p[at + ahead..]; use it for rows that come from memory, not for those that are in the cache.
template <class T, bool whole>
struct VectorLoad {
  int64_t at, count;
  HWY_INLINE SimdVec<T> operator()(const T* p) const {
    if constexpr (whole) return hn::LoadU(Simd<T>(), p + at);
    else return load_part(p + at, count);
  }
  HWY_INLINE SimdVec<T> streamed(const T* p, int64_t ahead = kStreamAhead<T>) const {
    prefetch_to_read(p + at + ahead);
    return (*this)(p);
  }
};
template <class T, bool whole>
struct VectorStore {
  int64_t at, count;
  HWY_INLINE void operator()(SimdVec<T> v, T* p) const {
    if constexpr (whole) hn::StoreU(v, Simd<T>(), p + at);
    else store_part(v, p + at, count);
  }
  HWY_INLINE void streamed(SimdVec<T> v, T* p, int64_t ahead = kStreamAhead<T>) const {
    prefetch_to_write(p + at + ahead);
    (*this)(v, p);
  }
};

/// Calls f(load, store) for each vector of a row of n elements.
template <class T, class F>
HWY_INLINE void for_vectors(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) f(VectorLoad<T, true>{i, 0}, VectorStore<T, true>{i, 0});
  if (i < n) f(VectorLoad<T, false>{i, n - i}, VectorStore<T, false>{i, n - i});
}

/// Calls f(std::integral_constant<int, i>) for i < N, for bodies that need the index as a constant. Plain loops with
/// HWY_UNROLL compile faster.
template <int N, class F>
HWY_INLINE void unrolled(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) HWY_ATTR { (f(std::integral_constant<int, I>{}), ...); }
  (std::make_integer_sequence<int, N>{});
}

#if HWY_TARGET == HWY_SCALAR

template <class T>
inline constexpr int64_t kBlockLanes = 1;

template <class T>
HWY_INLINE void transpose_piece(const T* const* rows, int64_t column, SimdVec<T>* out) {
  out[0] = hn::Set(Simd<T>{}, rows[0][column]);
}

#else

template <class T>
inline constexpr int64_t kBlockLanes = 16 / static_cast<int64_t>(sizeof(T));

// Loads a vector of 128-bit blocks; block q is read from rows[q * kBlockLanes].
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> gather_blocks(D d, const T* const* rows, int64_t column) {
  constexpr int64_t lanes = static_cast<int64_t>(hn::MaxLanes(D{}));
  if constexpr (lanes <= kBlockLanes<T>) {
    return hn::LoadU(d, rows[0] + column);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, gather_blocks(half, rows + lanes / 2, column), gather_blocks(half, rows, column));
  }
}

/// Transposes the squares of 2 doubles or 4 floats that the 128-bit blocks of the rows form.
template <class D, class V>
HWY_INLINE void transpose_in_blocks(D d, V r0, V r1, V* out) {
  out[0] = hn::InterleaveLower(d, r0, r1);
  out[1] = hn::InterleaveUpper(d, r0, r1);
}
template <class D, class V>
HWY_INLINE void transpose_in_blocks(D d, V r0, V r1, V r2, V r3, V* out) {
  const V low02 = hn::InterleaveLower(d, r0, r2), low13 = hn::InterleaveLower(d, r1, r3);
  const V high02 = hn::InterleaveUpper(d, r0, r2), high13 = hn::InterleaveUpper(d, r1, r3);
  transpose_in_blocks(d, low02, low13, out);
  transpose_in_blocks(d, high02, high13, out + 2);
}

/// Transposes a tile: out[c] lane r = rows[r][column + c] for r < lanes, c < kBlockLanes (4 floats or 2 doubles). Reads
/// 128-bit blocks, one from each row, and transposes inside the blocks, so no lane crosses a block.
template <class T>
HWY_INLINE void transpose_piece(const T* const* rows, int64_t column, SimdVec<T>* out) {
  const Simd<T> d;
  const auto r0 = gather_blocks(d, rows, column), r1 = gather_blocks(d, rows + 1, column);
  if constexpr (sizeof(T) == 8) {
    transpose_in_blocks(d, r0, r1, out);
  } else {
    transpose_in_blocks(d, r0, r1, gather_blocks(d, rows + 2, column), gather_blocks(d, rows + 3, column), out);
  }
}

#endif

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
