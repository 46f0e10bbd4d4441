// Builds row functions from vector functions; compiled once for each target.
#include "kernels/cpu/elementwise/rows.h"
#include "kernels/cpu/elementwise/number-inl.h"

#if defined(LEVIN_KERNELS_CPU_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_ROWS_INL_H
#undef LEVIN_KERNELS_CPU_ROWS_INL_H
#else
#define LEVIN_KERNELS_CPU_ROWS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

template <class T>
HWY_INLINE SimdVec<T> load_rest(const T* p, int64_t step, int64_t count) {
  return step ? load_part(p, count) : hn::Load(Simd<T>(), p);
}

/// Applies `Op::call(d, x..., p0, p1)` to a row. Steps are 0 or 1. The loop reads nothing from `r`: for the compiler, a
/// store of a vector may change it, and reading it again for each vector takes half of the time of an addition.
template <class Op, class T, std::size_t... I>
HWY_INLINE void simd_row(const Row& r, std::index_sequence<I...>) {
  const Simd<T> d;
  const auto p0 = constant(d, r.p0), p1 = constant(d, r.p1);
  const T* in[] = {static_cast<const T*>(r.in[I])...};
  T* out = static_cast<T*>(r.out);
  const int64_t step[] = {r.step[I] * kLanes<T>...}, ahead = r.ahead;
  int64_t left = r.n;
  for (; left >= kLanes<T>; left -= kLanes<T>) {
    (prefetch_to_read(reinterpret_cast<const char*>(in[I]) + ahead), ...);
    prefetch_to_write(reinterpret_cast<char*>(out) + ahead);
    hn::StoreU(Op::call(d, hn::LoadU(d, in[I])..., p0, p1), d, out);
    ((in[I] += step[I]), ...);
    out += kLanes<T>;
  }
  if (left > 0) store_part(Op::call(d, load_rest(in[I], step[I], left)..., p0, p1), out, left);
}

template <class Op, class T, std::size_t Inputs>
void row(const Row& r) {
  simd_row<Op, T>(r, std::make_index_sequence<Inputs>{});
}

/// The f32 and f64 rows of an operation.
template <class Op, std::size_t Inputs>
inline constexpr Rows kRows{.f32 = row<Op, float, Inputs>, .f64 = row<Op, double, Inputs>};

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
