// Builds row functions from vector functions; compiled once for each target.
#include "kernels/cpu/elementwise/rows.h"
#include "kernels/cpu/elementwise/number-inl.h"

#include <utility>

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
/// store of a vector may change it, and reading it again for each vector takes half of the time of an addition. What is
/// left over is copied to a whole vector and goes through the same loop: a second call of Op would double its code.
template <class Op, class T, std::size_t... I>
HWY_INLINE void simd_row(const Row& r, std::index_sequence<I...>) {
  const Simd<T> d;
  const auto p0 = constant(d, r.p0), p1 = constant(d, r.p1);
  const T* in[] = {static_cast<const T*>(r.in[I])...};
  T *out = static_cast<T*>(r.out), *end = nullptr;
  const int64_t step[] = {r.step[I] * kLanes<T>...}, ahead = r.ahead;
  int64_t left = r.n, rest = 0;
  HWY_ALIGN T copies[sizeof...(I)][kLanes<T>], result[kLanes<T>];
  while (true) {
    for (; left >= kLanes<T>; left -= kLanes<T>) {
      (prefetch_to_read(reinterpret_cast<const char*>(in[I]) + ahead), ...);
      prefetch_to_write(reinterpret_cast<char*>(out) + ahead);
      hn::StoreU(Op::call(d, hn::LoadU(d, in[I])..., p0, p1), d, out);
      ((in[I] += step[I]), ...);
      out += kLanes<T>;
    }
    if (rest > 0) return store_part(hn::Load(d, result), end, rest);
    if (left == 0) return;
    (hn::Store(load_rest(in[I], step[I], left), d, copies[I]), ...);
    ((in[I] = copies[I]), ...);
    end = std::exchange(out, result), rest = std::exchange(left, kLanes<T>);
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
