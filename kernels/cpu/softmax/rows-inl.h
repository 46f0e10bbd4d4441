// Maximum and sum of exponentials of a contiguous row; compiled once for each target.
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/wide-inl.h"

#if defined(LEVIN_KERNELS_CPU_SOFTMAX_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_SOFTMAX_ROWS_INL_H
#undef LEVIN_KERNELS_CPU_SOFTMAX_ROWS_INL_H
#else
#define LEVIN_KERNELS_CPU_SOFTMAX_ROWS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

template <class T>
inline constexpr T kLowest = -std::numeric_limits<T>::infinity();

template <class T>
HWY_INLINE T max_of_row(const T* x, int64_t n) {
  const Simd<T> d;
  constexpr int64_t lanes = kLanes<T>;
  auto m0 = hn::Set(d, kLowest<T>), m1 = m0, m2 = m0, m3 = m0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = hn::Max(hn::LoadU(d, x + i), m0);
    m1 = hn::Max(hn::LoadU(d, x + i + lanes), m1);
    m2 = hn::Max(hn::LoadU(d, x + i + 2 * lanes), m2);
    m3 = hn::Max(hn::LoadU(d, x + i + 3 * lanes), m3);
  }
  for (; i < n; i += lanes) m0 = hn::Max(load_row(x, i, n, kLowest<T>), m0);
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

/// Returns the sum of exp(x - m), where m is at least x, and writes the exponentials to `out` unless it is null. NaN
/// anywhere makes the sum NaN. Four vectors are added before they are widened: exponentials are at most 1.
template <class T>
HWY_INLINE double sum_exp_row(const T* x, T m, T* out, int64_t n) {
  const Simd<T> d;
  constexpr int64_t lanes = kLanes<T>;
  const auto top = hn::Set(d, m);
  const auto whole = [&](int64_t i) HWY_ATTR {
    const auto e = exp_of_low(d, hn::Sub(hn::LoadU(d, x + i), top));
    if (out) hn::StoreU(e, d, out + i);
    return e;
  };
  auto sum = hn::Zero(Simd<double>());
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto low = hn::Add(whole(i), whole(i + lanes));
    sum = add_wide(sum, hn::Add(low, hn::Add(whole(i + 2 * lanes), whole(i + 3 * lanes))));
  }
  for (; i + lanes <= n; i += lanes) sum = add_wide(sum, whole(i));
  if (i < n) {
    const auto e = exp_of_low(d, hn::Sub(load_part(x + i, n - i), top));
    if (out) store_part(e, out + i, n - i);
    sum = add_wide(sum, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), e));
  }
  return total(sum);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
