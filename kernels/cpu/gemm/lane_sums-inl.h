// Sums of the lanes of as many vectors as a vector has lanes.
#include "kernels/cpu/simd-inl.h"

#if defined(LEVIN_KERNELS_CPU_GEMM_LANE_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_GEMM_LANE_SUMS_INL_H
#undef LEVIN_KERNELS_CPU_GEMM_LANE_SUMS_INL_H
#else
#define LEVIN_KERNELS_CPU_GEMM_LANE_SUMS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

template <class T>
HWY_INLINE SimdVec<T> lane_sums(const SimdVec<T>* v) {
  return v[0];
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

/// Returns the vector whose lane i is the sum of the lanes of v[i]: squares of 128-bit blocks are transposed and added,
/// then the blocks themselves.
template <class T>
HWY_INLINE SimdVec<T> lane_sums(const SimdVec<T>* v) {
  const Simd<T> d;
  constexpr int block = static_cast<int>(kBlockLanes<T>), blocks = static_cast<int>(kLanes<T>) / block;
  SimdVec<T> part[blocks], whole[blocks];
  HWY_UNROLL(4)
  for (int q = 0; q < blocks; ++q) {
    const SimdVec<T>* from = v + block * (blocks == 4 && (q == 1 || q == 2) ? 3 - q : q);
    SimdVec<T> lane[block];
    if constexpr (block == 2) {
      transpose_in_blocks(d, from[0], from[1], lane);
      part[q] = hn::Add(lane[0], lane[1]);
    } else {
      transpose_in_blocks(d, from[0], from[1], from[2], from[3], lane);
      part[q] = hn::Add(hn::Add(lane[0], lane[1]), hn::Add(lane[2], lane[3]));
    }
  }
  transpose_blocks<blocks>(part, whole, 1);
  SimdVec<T> sum = whole[0];
  HWY_UNROLL(4)
  for (int q = 1; q < blocks; ++q) sum = hn::Add(sum, whole[q]);
  return sum;
}

#endif

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
