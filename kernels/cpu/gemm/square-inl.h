// Transposition of a square of as many lines as a vector has lanes, in registers.
#include "kernels/cpu/simd-inl.h"

#if defined(LEVIN_KERNELS_CPU_GEMM_SQUARE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_GEMM_SQUARE_INL_H
#undef LEVIN_KERNELS_CPU_GEMM_SQUARE_INL_H
#else
#define LEVIN_KERNELS_CPU_GEMM_SQUARE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

template <class T>
HWY_INLINE void transpose_square(const T* const* lines, int64_t p, SimdVec<T>* out) {
  out[0] = hn::Set(Simd<T>{}, lines[0][p]);
}

#else

/// Transposes `count` (1, 2 or 4) vectors of as many 128-bit blocks: out[q * step] holds block q of each. Vector i is
/// in[i * step]; four vectors are given in the order 0, 2, 1, 3, which saves shuffles.
template <int count, class V>
HWY_INLINE void transpose_blocks(const V* in, V* out, int step) {
  const hn::DFromV<V> d;
  if constexpr (count == 1) {
    out[0] = in[0];
  } else if constexpr (count == 2) {
    out[0] = hn::ConcatLowerLower(d, in[step], in[0]);
    out[step] = hn::ConcatUpperUpper(d, in[step], in[0]);
  } else {
    const V low02 = hn::ConcatLowerLower(d, in[step], in[0]);
    const V low13 = hn::ConcatLowerLower(d, in[3 * step], in[2 * step]);
    const V high02 = hn::ConcatUpperUpper(d, in[step], in[0]);
    const V high13 = hn::ConcatUpperUpper(d, in[3 * step], in[2 * step]);
    out[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low13), low02);
    out[step] = hn::OddEvenBlocks(low13, hn::SwapAdjacentBlocks(low02));
    out[2 * step] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high13), high02);
    out[3 * step] = hn::OddEvenBlocks(high13, hn::SwapAdjacentBlocks(high02));
  }
}

/// Computes out[i] lane j = lines[j][p + i]. Each line is read by one load, because lines a multiple of 4 KiB apart
/// share the sets of the cache and would evict each other before a second load.
template <class T>
HWY_INLINE void transpose_square(const T* const* lines, int64_t p, SimdVec<T>* out) {
  const Simd<T> d;
  constexpr int block = static_cast<int>(kBlockLanes<T>), blocks = static_cast<int>(kLanes<T>) / block;
  SimdVec<T> part[blocks * block];  // (blocks, block)
  HWY_UNROLL(4)
  for (int q = 0; q < blocks; ++q) {
    const T* const* line = lines + block * (blocks == 4 && (q == 1 || q == 2) ? 3 - q : q);
    SimdVec<T>* to = part + q * block;
    const auto r0 = hn::LoadU(d, line[0] + p), r1 = hn::LoadU(d, line[1] + p);
    if constexpr (block == 2) {
      transpose_in_blocks(d, r0, r1, to);
    } else {
      transpose_in_blocks(d, r0, r1, hn::LoadU(d, line[2] + p), hn::LoadU(d, line[3] + p), to);
    }
  }
  HWY_UNROLL(4)
  for (int c = 0; c < block; ++c) transpose_blocks<blocks>(part + c, out + c, block);
}

#endif

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
