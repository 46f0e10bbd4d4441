// Elements widened to double, for sums that should not lose digits; compiled once for each target.
#include "kernels/cpu/simd-inl.h"

#if defined(LEVIN_KERNELS_CPU_WIDE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_WIDE_INL_H
#undef LEVIN_KERNELS_CPU_WIDE_INL_H
#else
#define LEVIN_KERNELS_CPU_WIDE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

/// kLanes<double> elements from p.
template <class T>
HWY_INLINE SimdVec<double> load_wide(const T* p) {
  const Simd<double> d;
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(d, p);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, Simd<double>>(), p));
  }
}

/// The first `count` of them, the other lanes zero; reads nothing else.
template <class T>
HWY_INLINE SimdVec<double> load_wide_part(const T* p, int64_t count) {
  const Simd<double> d;
  if constexpr (std::is_same_v<T, double>) {
    return load_part(p, count);
  } else if constexpr (kExactMasks) {
    const hn::Rebind<T, Simd<double>> narrow;
    return hn::PromoteTo(d, hn::MaskedLoad(hn::FirstN(narrow, static_cast<size_t>(count)), narrow, p));
  } else {
    HWY_ALIGN double lanes[kLanes<double>] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = static_cast<double>(p[i]);
    return hn::Load(d, lanes);
  }
}

/// Sum of all lanes.
HWY_INLINE double total(SimdVec<double> v) {
  return hn::GetLane(hn::SumOfLanes(Simd<double>(), v));
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
