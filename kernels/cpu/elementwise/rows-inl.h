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
HWY_INLINE SimdVec<T> load_rest(const T* p, int64_t step, int64_t at, int64_t count) {
  return step ? load_part(p + at, count) : hn::Load(Simd<T>(), p);
}

/// Rows with fewer elements than this are mostly in the cache, so nothing is prefetched.
template <class T>
inline constexpr int64_t kLongRow = 65536 / static_cast<int64_t>(sizeof(T));

/// Applies `Op::call(d, x..., p0, p1)` to a row. Steps are 0 or 1, so an input's address is p + i * step.
template <class Op, class T, std::size_t... I>
HWY_INLINE void simd_row(const Row& r, std::index_sequence<I...>) {
  const Simd<T> d;
  const auto p0 = constant(d, r.p0), p1 = constant(d, r.p1);
  const T* const in[] = {static_cast<const T*>(r.in[I])...};
  T* const out = static_cast<T*>(r.out);
  const int64_t ahead = r.n < kLongRow<T> ? 0 : kStreamAhead<T>;
  int64_t i = 0;
  for (; i + kLanes<T> <= r.n; i += kLanes<T>) {
    (prefetch_to_read(in[I] + (i + ahead) * r.step[I]), ...);
    prefetch_to_write(out + i + ahead);
    hn::StoreU(Op::call(d, hn::LoadU(d, in[I] + i * r.step[I])..., p0, p1), d, out + i);
  }
  if (i < r.n) {
    const int64_t rest = r.n - i;
    store_part(Op::call(d, load_rest(in[I], r.step[I], i, rest)..., p0, p1), out + i, rest);
  }
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
