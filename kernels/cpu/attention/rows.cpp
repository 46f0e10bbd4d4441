// Softmax and its derivative on blocks of scores.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/rows.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/math-inl.h"

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

/// Calls f(i) for whole vectors and then part(i, count) for the remainder.
template <class T, class F, class G>
HWY_INLINE void in_vectors(int64_t n, F&& f, G&& part) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) f(i);
  if (i < n) part(i, n - i);
}

template <class T>
HWY_INLINE T largest(const T* x, int64_t n) {
  const Simd<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
  auto peak = lowest;
  in_vectors<T>(
      n, [&](int64_t i) HWY_ATTR { peak = hn::Max(peak, hn::LoadU(d, x + i)); },
      [&](int64_t i, int64_t count) HWY_ATTR {
        const auto inside = hn::FirstN(d, static_cast<size_t>(count));
        peak = hn::Max(peak, hn::IfThenElse(inside, load_part(x + i, count), lowest));
      });
  return hn::GetLane(hn::MaxOfLanes(d, peak));
}

/// Computes x = exp(x - peak) and returns the sum.
template <class T>
HWY_INLINE T exponentials(T* x, int64_t n, T peak) {
  const Simd<T> d;
  const auto shift = hn::Set(d, peak);
  auto sum = hn::Zero(d);
  in_vectors<T>(
      n,
      [&](int64_t i) HWY_ATTR {
        const auto y = exp_v(d, hn::Sub(hn::LoadU(d, x + i), shift));
        hn::StoreU(y, d, x + i);
        sum = hn::Add(sum, y);
      },
      [&](int64_t i, int64_t count) HWY_ATTR {
        const auto y = exp_v(d, hn::Sub(load_part(x + i, count), shift));
        store_part(y, x + i, count);
        sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count)), y));
      });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
HWY_INLINE void scale_row(T* x, int64_t n, T factor) {
  const Simd<T> d;
  const auto f = hn::Set(d, factor);
  in_vectors<T>(
      n, [&](int64_t i) HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f), d, x + i); },
      [&](int64_t i, int64_t count) HWY_ATTR { store_part(hn::Mul(load_part(x + i, count), f), x + i, count); });
}

template <class T>
void shift(T* scores, const T* bias, int64_t n) {
  const Simd<T> d;
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto shown = [&](auto s, auto b) HWY_ATTR { return hn::IfThenElse(hn::Eq(b, hidden), hidden, hn::Add(s, b)); };
  in_vectors<T>(
      n,
      [&](int64_t i) HWY_ATTR { hn::StoreU(shown(hn::LoadU(d, scores + i), hn::LoadU(d, bias + i)), d, scores + i); },
      [&](int64_t i, int64_t count)
          HWY_ATTR { store_part(shown(load_part(scores + i, count), load_part(bias + i, count)), scores + i, count); });
}

template <class T>
void drop(T* x, const std::uint32_t* words, int64_t n, std::uint32_t limit, T factor) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    const Simd<T> d;
    const Simd<std::int32_t> bits;  // of 24 bits the signed comparison is exact
    const auto bound = hn::Set(bits, static_cast<std::int32_t>(limit));
    for (; i + kLanes<T> <= n; i += kLanes<T>) {
      const auto drawn = hn::BitCast(bits, hn::ShiftRight<8>(hn::LoadU(Simd<std::uint32_t>(), words + i)));
      const auto dropped = hn::RebindMask(d, hn::Lt(drawn, bound));
      hn::StoreU(hn::IfThenZeroElse(dropped, hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor))), d, x + i);
    }
  }
  for (; i < n; ++i) x[i] = (words[i] >> 8) < limit ? T(0) : x[i] * factor;
}

template <class T>
void advance(const ScoreBlock<T>& b, T* peak, T* sum, Matrix<T> out, int64_t width, bool first) {
  for (int64_t r = 0; r < b.rows; ++r) {
    T* row = b.scores + r * b.step;
    const int64_t n = b.valid(r);
    if (first) {
      peak[r] = -std::numeric_limits<T>::infinity();
      sum[r] = T(0);
    }
    if (n > 0) {
      const T top = std::max(peak[r], largest(row, n));
      const T hidden = -std::numeric_limits<T>::infinity();
      if (top == hidden && std::all_of(row, row + n, [&](T s) { return s == hidden; })) {  // nothing to see so far
        std::fill(row, row + b.columns, T(0));
        continue;
      }
      const T added = exponentials(row, n, top);
      if (first) {
        sum[r] = added;
      } else {
        const T factor = std::exp(peak[r] - top);
        sum[r] = sum[r] * factor + added;
        if (factor != T(1)) scale_row(out.from_row(r).data, width, factor);
      }
      peak[r] = top;
    }
    std::fill(row + n, row + b.columns, T(0));
  }
}

template <class T>
void finish(int64_t rows, const T* peak, const T* sum, Matrix<T> out, int64_t width, T* lse) {
  for (int64_t r = 0; r < rows; ++r) {
    scale_row(out.from_row(r).data, width, T(1) / sum[r]);
    lse[r] = peak[r] + std::log(sum[r]);
  }
}

template <class T>
void dot(int64_t rows, int64_t width, Matrix<T> left, Matrix<T> right, T* sums) {
  const Simd<T> d;
  for (int64_t r = 0; r < rows; ++r) {
    const T *a = left.from_row(r).data, *b = right.from_row(r).data;
    auto sum = hn::Zero(d);
    in_vectors<T>(
        width, [&](int64_t i) HWY_ATTR { sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum); },
        [&](int64_t i, int64_t count)
            HWY_ATTR { sum = hn::MulAdd(load_part(a + i, count), load_part(b + i, count), sum); });
    sums[r] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

template <class T>
void differentiate(const ScoreBlock<T>& b, T* dp, const T* lse, const T* delta) {
  const Simd<T> d;
  for (int64_t r = 0; r < b.rows; ++r) {
    T* p = b.scores + r * b.step;
    T* ds = dp + r * b.step;
    const int64_t n = b.valid(r);
    const auto shift = hn::Set(d, lse[r]), mean = hn::Set(d, delta[r]);
    in_vectors<T>(
        n,
        [&](int64_t i) HWY_ATTR {
          const auto y = exp_v(d, hn::Sub(hn::LoadU(d, p + i), shift));
          hn::StoreU(y, d, p + i);
          hn::StoreU(hn::Mul(y, hn::Sub(hn::LoadU(d, ds + i), mean)), d, ds + i);
        },
        [&](int64_t i, int64_t count) HWY_ATTR {
          const auto y = exp_v(d, hn::Sub(load_part(p + i, count), shift));
          store_part(y, p + i, count);
          store_part(hn::Mul(y, hn::Sub(load_part(ds + i, count), mean)), ds + i, count);
        });
    std::fill(p + n, p + b.columns, T(0));
    std::fill(ds + n, ds + b.columns, T(0));
  }
}

template <class T>
inline constexpr AttentionRows<T> kAttentionRows{shift<T>, drop<T>, advance<T>, finish<T>, dot<T>, differentiate<T>};

const AttentionRows<float>* attention_rows_f32() { return &kAttentionRows<float>; }
const AttentionRows<double>* attention_rows_f64() { return &kAttentionRows<double>; }

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(attention_rows_f32);
HWY_EXPORT(attention_rows_f64);

template <>
const AttentionRows<float>& attention_rows<float>() {
  return *HWY_DYNAMIC_DISPATCH(attention_rows_f32)();
}
template <>
const AttentionRows<double>& attention_rows<double>() {
  return *HWY_DYNAMIC_DISPATCH(attention_rows_f64)();
}
}  // namespace levin::kernels::cpu
#endif
