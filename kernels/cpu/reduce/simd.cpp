// SIMD strips: elements are widened to double and accumulated in four vectors.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce/simd.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/reduce/reduce.h"
#include "kernels/cpu/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

using Wide = SimdVec<double>;

struct Plus {
  static HWY_INLINE Wide combine(Wide a, Wide b) { return hn::Add(a, b); }
};
struct Larger {
  static HWY_INLINE Wide combine(Wide a, Wide b) { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); }
};
struct Smaller {
  static HWY_INLINE Wide combine(Wide a, Wide b) { return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b); }
};
struct Same {
  static HWY_INLINE Wide map(Wide x) { return x; }
};
struct Magnitude {
  static HWY_INLINE Wide map(Wide x) { return hn::Abs(x); }
};
struct Squared {
  static HWY_INLINE Wide map(Wide x) { return hn::Mul(x, x); }
};

template <class Op>
HWY_INLINE double across(Wide v) {
  const Simd<double> d;
  if constexpr (std::is_base_of_v<reduction::Sum, Op>) {
    return hn::GetLane(hn::SumOfLanes(d, v));
  } else {
    HWY_ALIGN double lanes[kLanes<double>];
    hn::Store(v, d, lanes);
    double acc = lanes[0];
    for (int64_t i = 1; i < kLanes<double>; ++i) acc = Op::combine(acc, lanes[i]);
    return acc;
  }
}

/// `Op` is the operation's plain form, Combine and Map its vector form.
template <class Op, class Combine, class Map, class T>
void rows(const Strip& s, double* acc) {
  if (s.stride != 1 && s.n > 1) return strip_rows<Op, T, double>(s, acc);
  const Simd<double> d;
  constexpr int64_t lanes = kLanes<double>;
  const Wide neutral = hn::Set(d, Op::template neutral<double>());
  Wide a0 = neutral, a1 = neutral, a2 = neutral, a3 = neutral;
  const T* row = static_cast<const T*>(s.x);
  for (int64_t r = 0; r < s.rows; ++r, row += s.row_stride) {
    int64_t i = 0;
    for (; i + 4 * lanes <= s.n; i += 4 * lanes) {
      prefetch_to_read(row + i + kStreamAhead<T>);
      prefetch_to_read(row + i + 2 * lanes + kStreamAhead<T>);
      a0 = Combine::combine(a0, Map::map(load_wide(row + i)));
      a1 = Combine::combine(a1, Map::map(load_wide(row + i + lanes)));
      a2 = Combine::combine(a2, Map::map(load_wide(row + i + 2 * lanes)));
      a3 = Combine::combine(a3, Map::map(load_wide(row + i + 3 * lanes)));
    }
    for (; i + lanes <= s.n; i += lanes) a0 = Combine::combine(a0, Map::map(load_wide(row + i)));
    if (i < s.n) {
      const auto rest = hn::FirstN(d, static_cast<size_t>(s.n - i));
      a1 = Combine::combine(a1, hn::IfThenElse(rest, Map::map(load_wide_part(row + i, s.n - i)), neutral));
    }
  }
  const Wide all = Combine::combine(Combine::combine(a0, a1), Combine::combine(a2, a3));
  *acc = Op::combine(*acc, across<Op>(all));
}

template <class Op, class Combine, class Map, class T>
void columns(const Strip& s, double* acc) {
  if (s.stride != 1 && s.n > 1) return strip_columns<Op, T, double>(s, acc);
  const Simd<double> d;
  constexpr int64_t lanes = kLanes<double>;
  const T* row = static_cast<const T*>(s.x);
  const int64_t step = s.row_stride;
  int64_t r = 0;
  for (; r + 4 <= s.rows; r += 4, row += 4 * step) {
    int64_t i = 0;
    for (; i + lanes <= s.n; i += lanes) {
      const T* const later = row + i + (i / lanes % 2 == 0 ? 4 : 6) * step;  // two of the next four rows
      prefetch_to_read(later);
      prefetch_to_read(later + step);
      const Wide low = Combine::combine(Map::map(load_wide(row + i)), Map::map(load_wide(row + step + i)));
      const Wide high =
          Combine::combine(Map::map(load_wide(row + 2 * step + i)), Map::map(load_wide(row + 3 * step + i)));
      hn::StoreU(Combine::combine(hn::LoadU(d, acc + i), Combine::combine(low, high)), d, acc + i);
    }
    for (; i < s.n; ++i)
      for (int64_t k = 0; k < 4; ++k)
        acc[i] = Op::combine(acc[i], Op().template map<double>(row[k * step + i]));
  }
  for (; r < s.rows; ++r, row += step) {
    int64_t i = 0;
    for (; i + lanes <= s.n; i += lanes)
      hn::StoreU(Combine::combine(hn::LoadU(d, acc + i), Map::map(load_wide(row + i))), d, acc + i);
    for (; i < s.n; ++i) acc[i] = Op::combine(acc[i], Op().template map<double>(row[i]));
  }
}

template <class Op, class Combine, class Map, class T>
constexpr Reducer<double> reducer() {
  return {rows<Op, Combine, Map, T>, columns<Op, Combine, Map, T>, Op::template combine<double>,
          Op::template neutral<double>()};
}

template <class T>
inline constexpr FloatReducers kReducers{
    .sum = reducer<reduction::Sum, Plus, Same, T>(),
    .sum_abs = reducer<reduction::SumAbs, Plus, Magnitude, T>(),
    .sum_square = reducer<reduction::SumSquare, Plus, Squared, T>(),
    .max = reducer<reduction::Max, Larger, Same, T>(),
    .min = reducer<reduction::Min, Smaller, Same, T>(),
    .max_abs = reducer<reduction::MaxAbs, Larger, Magnitude, T>()};

const FloatReducers* reducers_f32() { return &kReducers<float>; }
const FloatReducers* reducers_f64() { return &kReducers<double>; }

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(reducers_f32);
HWY_EXPORT(reducers_f64);

const FloatReducers& float_reducers(float) {
  static const FloatReducers& table = *HWY_DYNAMIC_DISPATCH(reducers_f32)();
  return table;
}
const FloatReducers& float_reducers(double) {
  static const FloatReducers& table = *HWY_DYNAMIC_DISPATCH(reducers_f64)();
  return table;
}
}  // namespace levin::kernels::cpu
#endif
