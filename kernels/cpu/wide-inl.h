// Elements widened to double, for sums that must not lose digits; compiled once for each target.
#include "kernels/cpu/simd-inl.h"

#if defined(LEVIN_KERNELS_CPU_WIDE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_WIDE_INL_H
#undef LEVIN_KERNELS_CPU_WIDE_INL_H
#else
#define LEVIN_KERNELS_CPU_WIDE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

/// Loads kLanes<double> elements from p.
template <class T>
HWY_INLINE SimdVec<double> load_wide(const T* p) {
  const Simd<double> d;
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(d, p);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, Simd<double>>(), p));
  }
}

/// Loads the first `count` elements, with zero in the other lanes; reads nothing else.
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

/// Adds all lanes of v to acc; two lanes of a float vector go to one of acc's.
HWY_INLINE SimdVec<double> add_wide(SimdVec<double> acc, SimdVec<double> v) { return hn::Add(acc, v); }
HWY_INLINE SimdVec<double> add_wide(SimdVec<double> acc, SimdVec<float> v) {
  const Simd<double> d;
#if HWY_TARGET == HWY_SCALAR
  return hn::Add(acc, hn::PromoteTo(d, v));
#else
  const hn::Half<Simd<float>> half;
  return hn::Add(acc, hn::Add(hn::PromoteTo(d, hn::LowerHalf(half, v)), hn::PromoteTo(d, hn::UpperHalf(half, v))));
#endif
}

/// Loads elements of a row from `at` on: a whole vector, or the rest of the row with `fill` in the other lanes.
template <class T>
HWY_INLINE SimdVec<T> load_row(const T* row, int64_t at, int64_t n, T fill = T(0)) {
  const Simd<T> d;
  if (n - at >= kLanes<T>) return hn::LoadU(d, row + at);
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n - at)), load_part(row + at, n - at), hn::Set(d, fill));
}
template <class T>
HWY_INLINE void store_row(SimdVec<T> v, T* row, int64_t at, int64_t n) {
  if (n - at >= kLanes<T>) {
    hn::StoreU(v, Simd<T>(), row + at);
  } else {
    store_part(v, row + at, n - at);
  }
}

/// Returns the sum of all lanes.
HWY_INLINE double total(SimdVec<double> v) {
  return hn::GetLane(hn::SumOfLanes(Simd<double>(), v));
}

/// Returns the sum of f(load) over the vectors of a row of n elements; lanes beyond the end do not count. Four vectors
/// are added in T, then in double: this error is that of rounding each term once more.
template <class T, class F>
HWY_INLINE double wide_sum(int64_t n, F&& f) {
  const Simd<T> d;
  constexpr int64_t lanes = kLanes<T>;
  const auto whole = [&](int64_t i) HWY_ATTR { return f(VectorLoad<T, true>{i, 0}); };
  auto sum = hn::Zero(Simd<double>());
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto low = hn::Add(whole(i), whole(i + lanes)), high = hn::Add(whole(i + 2 * lanes), whole(i + 3 * lanes));
    sum = add_wide(sum, hn::Add(low, high));
  }
  for (; i + lanes <= n; i += lanes) sum = add_wide(sum, whole(i));
  if (i < n) {
    const auto part = f(VectorLoad<T, false>{i, n - i});
    sum = add_wide(sum, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), part));
  }
  return total(sum);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
