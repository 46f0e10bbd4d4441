// Splits floats into bfloat16 parts, in the order in which the matrix unit reads them (amx.h).
#include "kernels/cpu/gemm/amx.h"
#include "kernels/cpu/gemm/ops.h"
#include "kernels/cpu/simd-inl.h"

#include <algorithm>

#if defined(LEVIN_KERNELS_CPU_GEMM_SPLIT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_GEMM_SPLIT_INL_H
#undef LEVIN_KERNELS_CPU_GEMM_SPLIT_INL_H
#else
#define LEVIN_KERNELS_CPU_GEMM_SPLIT_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

using WordVec = SimdVec<std::uint32_t>;

/// Returns the bits of the bfloat16 nearest to each float, in the upper halves; ties go away from zero.
HWY_INLINE WordVec nearest_part(SimdVec<float> x) {
  const Simd<std::uint32_t> d;
  return hn::And(hn::Add(hn::BitCast(d, x), hn::Set(d, 0x8000U)), hn::Set(d, 0xffff0000U));
}

/// Collects the bits of the least magnitude that is not zero, less one, and of the largest.
struct SeenMagnitudes {
  WordVec least, most;

  HWY_INLINE SeenMagnitudes() : least(hn::Set(Simd<std::uint32_t>(), ~0U)), most(hn::Zero(Simd<std::uint32_t>())) {}
  HWY_INLINE void add(SimdVec<float> x) {
    const Simd<std::uint32_t> d;
    const WordVec bits = hn::And(hn::BitCast(d, x), hn::Set(d, 0x7fffffffU));
    most = hn::Max(most, bits);
    least = hn::Min(least, hn::Sub(bits, hn::Set(d, 1U)));  // zero becomes the largest word
  }
  HWY_INLINE void store(Magnitudes& to) const {
    const Simd<std::uint32_t> d;
    HWY_ALIGN std::uint32_t words[kLanes<std::uint32_t>];
    hn::Store(least, d, words);
    for (const std::uint32_t word : words) to.least = std::min(to.least, word);
    hn::Store(most, d, words);
    for (const std::uint32_t word : words) to.most = std::max(to.most, word);
  }
};

/// Writes the three tiles of one step. Line r of 16 begins at lines + r * line_step, and its second half, of the terms
/// 16 further, `half` elements behind.
#if HWY_TARGET <= HWY_AVX3  // inlined it saves a twentieth of a product's time; others are for tests, and small
HWY_INLINE
#else
HWY_NOINLINE inline
#endif
void split_tile(const float* lines, int64_t line_step, int64_t half, const int64_t (&places)[kParts],
                std::uint16_t* dst, SeenMagnitudes& seen) {
  const Simd<std::uint32_t> words;
  const Simd<float> d;
  for (int64_t r = 0; r < kStripWidth; ++r, lines += line_step) {
    for (int64_t i = 0; i < kStripWidth; i += kLanes<float>) {
      auto first = hn::LoadU(d, lines + i), second = hn::LoadU(d, lines + half + i);
      seen.add(first);
      seen.add(second);
      auto* to = reinterpret_cast<std::uint32_t*>(dst) + r * kStripWidth + i;
      HWY_UNROLL(3)
      for (int part = 0; part < kParts; ++part) {
        const WordVec low = nearest_part(first), high = nearest_part(second);
        hn::StoreU(hn::Or(hn::ShiftRight<16>(low), high), words, to + places[part] * (kTileNumbers / 2));
        first = hn::Sub(first, hn::BitCast(d, low));
        second = hn::Sub(second, hn::BitCast(d, high));
      }
    }
  }
}

/// Computes to[c * rows + r] = from[r * step + c] for r < rows, c < columns, both multiples of 16.
HWY_INLINE void transpose_lines(const float* from, int64_t step, int64_t rows, int64_t columns, float* to) {
  const Simd<float> d;
  constexpr int64_t lanes = kLanes<float>, block = kBlockLanes<float>;
  for (int64_t r = 0; r < rows; r += lanes) {
    const float* lines[lanes];
    for (int64_t i = 0; i < lanes; ++i) lines[i] = from + (r + i) * step;
    for (int64_t c = 0; c < columns; c += block) {
      SimdVec<float> out[block];
      transpose_piece(lines, c, out);
      for (int64_t i = 0; i < block; ++i) hn::StoreU(out[i], d, to + (c + i) * rows + r);
    }
  }
}

/// Splits `count` rows of A or columns of B; those beyond, to a multiple of 16, and terms beyond k are zero.
inline void split_strips(const SplitArgs& g) {
  SeenMagnitudes seen;
  // Lines of a tile follow the terms for A and the columns for B. Others are copied into such lines.
  const int64_t along = g.of_a ? g.p_stride : g.i_stride, across = g.of_a ? g.i_stride : g.p_stride;
  const int64_t lines = g.of_a ? kStripWidth : kStepTerms, length = g.of_a ? kStepTerms : kStripWidth;
  const int64_t half = g.of_a ? kStripWidth : kStripWidth * kStripWidth;
  const int64_t(&places)[kParts] = g.of_a ? kPlacesOfA : kPlacesOfB;
  HWY_ALIGN float copied[kTileNumbers];
  for (int64_t p = 0; p < g.k; p += kStepTerms) {
    for (int64_t i = 0; i < g.count; i += kStripWidth) {
      const int64_t rows = std::min(g.count - i, kStripWidth), terms = std::min(g.k - p, kStepTerms);
      const float* src = g.src + i * g.i_stride + p * g.p_stride;
      std::uint16_t* dst = g.dst + i / kStripWidth * g.strip + p / kStepTerms * kStepNumbers;
      const bool whole = rows == kStripWidth && terms == kStepTerms;
      if (whole && along == 1) {
        split_tile(src, across, g.of_a ? half : kStripWidth * across, places, dst, seen);
        continue;
      }
      if (whole && across == 1) {
        transpose_lines(src, along, length, lines, copied);
      } else {
        std::fill_n(copied, kTileNumbers, 0.0F);
        for (int64_t r = 0; r < (g.of_a ? rows : terms); ++r)
          for (int64_t c = 0; c < (g.of_a ? terms : rows); ++c) copied[r * length + c] = src[r * across + c * along];
      }
      split_tile(copied, length, half, places, dst, seen);
    }
  }
  seen.store(*g.seen);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
