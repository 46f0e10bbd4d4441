// Padded copies of planes, split into phases; compiled once for each target.
#include "kernels/cpu/conv/ops.h"
#include "kernels/cpu/simd-inl.h"

#include <algorithm>

#if defined(LEVIN_KERNELS_CPU_CONV_PAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_CONV_PAD_INL_H
#undef LEVIN_KERNELS_CPU_CONV_PAD_INL_H
#else
#define LEVIN_KERNELS_CPU_CONV_PAD_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

template <class T>
HWY_INLINE void zero(T* out, int64_t n) {
  const Simd<T> d;
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) hn::StoreU(hn::Zero(d), d, out + i);
  if (i < n) store_part(hn::Zero(d), out + i, n - i);
}

/// Loads lanes [low, high) of a vector, bounds that may lie outside of it, with zero in the others; reads nothing else.
template <class T>
class Between {
 public:
  Between(int64_t low, int64_t high)
      : low_(std::clamp<int64_t>(low, 0, kLanes<T>)), high_(std::clamp<int64_t>(high, low_, kLanes<T>)),
        mask_(hn::AndNot(hn::FirstN(D(), static_cast<size_t>(low_)), hn::FirstN(D(), static_cast<size_t>(high_)))) {}

  HWY_INLINE SimdVec<T> load(const T* p) const {
    if constexpr (kExactMasks) {
      return hn::MaskedLoad(mask_, D(), p);
    } else {
      HWY_ALIGN T lanes[kLanes<T>] = {};
      for (int64_t i = low_; i < high_; ++i) lanes[i] = p[i];
      return hn::Load(D(), lanes);
    }
  }

 private:
  using D = Simd<T>;
  int64_t low_, high_;
  hn::Mask<D> mask_;
};

/// Copies the vector of columns from c on of all lines inside; one phase.
template <class T>
HWY_INLINE void pad_one_phase(const PadLines<T>& p, int64_t c, int64_t width) {
  const int64_t extent = p.extent, row_step = p.row_step, from = c + p.origin;
  const Between<T> part(-from, p.size - from);
  const T* line = p.source + from;
  T* out = p.out + p.first * extent + c;
  for (int64_t r = p.first; r < p.last; ++r, line += row_step, out += extent) {
    if (width == kLanes<T>) hn::StoreU(part.load(line), Simd<T>(), out);
    else store_part(part.load(line), out, width);
  }
}

#if HWY_TARGET != HWY_SCALAR
/// The same for two phases: the even and the odd elements of two vectors, of which the second may have none inside.
template <bool has_second, class T>
HWY_INLINE void pad_two_phases(const PadLines<T>& p, int64_t c, int64_t width) {
  const Simd<T> d;
  const int64_t extent = p.extent, row_step = p.row_step, from = 2 * c + p.origin, phase = p.lines * extent;
  const Between<T> first(-from, p.size - from), second(-from - kLanes<T>, p.size - from - kLanes<T>);
  const T* line = p.source + from;
  T* out = p.out + p.first * extent + c;
  for (int64_t r = p.first; r < p.last; ++r, line += row_step, out += extent) {
    const auto a = first.load(line), b = has_second ? second.load(line + kLanes<T>) : hn::Zero(d);
    const auto even = hn::ConcatEven(d, b, a), odd = hn::ConcatOdd(d, b, a);
    if (width == kLanes<T>) {
      hn::StoreU(even, d, out);
      hn::StoreU(odd, d, out + phase);
    } else {
      store_part(even, out, width);
      store_part(odd, out + phase, width);
    }
  }
}
#endif

template <class T>
void pad_any_phases(const PadLines<T>& p) {
  for (int64_t phase = 0; phase < p.phases; ++phase) {
    for (int64_t r = p.first; r < p.last; ++r) {
      const T* const line = p.source + (r - p.first) * p.row_step;
      T* const out = p.out + (phase * p.lines + r) * p.extent;
      for (int64_t c = 0; c < p.extent; ++c) {
        const int64_t at = c * p.phases + phase + p.origin;
        out[c] = at >= 0 && at < p.size ? line[at] : T(0);
      }
    }
  }
}

template <class T>
void pad_lines(const PadLines<T>& p) {
  constexpr int64_t lanes = kLanes<T>;
  for (int64_t phase = 0; phase < p.phases; ++phase) {
    T* const out = p.out + phase * p.lines * p.extent;
    zero(out, p.first * p.extent);
    zero(out + p.last * p.extent, (p.lines - p.last) * p.extent);
  }
  if (p.phases > (HWY_TARGET == HWY_SCALAR ? 1 : 2)) return pad_any_phases(p);
  for (int64_t c = 0; c < p.extent; c += lanes) {
    const int64_t width = std::min(lanes, p.extent - c);
    if (p.phases == 1) {
      pad_one_phase(p, c, width);
#if HWY_TARGET != HWY_SCALAR
    } else if (p.size - p.origin - 2 * c > lanes) {
      pad_two_phases<true>(p, c, width);
    } else {
      pad_two_phases<false>(p, c, width);
#endif
    }
  }
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
