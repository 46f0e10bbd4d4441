// Max and average pooling: a vector holds neighbouring outputs; with stride 2, two vectors of the input are split into
// even and odd columns, which serve two columns of the windows.
#include "kernels/cpu/targets.h"
#include "kernels/src/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool/forward.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/simd-inl.h"

#include <levin/core/parallel.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

/// Loads the first `count` elements; count may exceed a vector or be negative.
template <class T>
HWY_INLINE SimdVec<T> load_some(const T* p, int64_t count) {
  if (count >= kLanes<T>) return hn::LoadU(Simd<T>{}, p);
  return load_part(p, std::max<int64_t>(count, 0));
}

/// Calls f(q, elements in column q of the windows) for `count` neighbouring outputs; p is the first one's column 0.
template <int64_t kStride, class T, class F>
HWY_INLINE void each_column(const T* p, int64_t columns, int64_t dilation, int64_t count, F&& f) {
  if constexpr (kStride == 1) {
    for (int64_t q = 0; q < columns; ++q) f(q, load_some(p + q * dilation, count));
  } else {
#if HWY_TARGET != HWY_SCALAR
    const Simd<T> d;
    const int64_t paired = dilation == 1 ? columns & ~int64_t{1} : 0;
    for (int64_t q = 0; q < paired; q += 2) {
      const auto low = load_some(p + q, 2 * count), high = load_some(p + q + kLanes<T>, 2 * count - kLanes<T>);
      f(q, hn::ConcatEven(d, high, low));
      f(q + 1, hn::ConcatOdd(d, high, low));
    }
    for (int64_t q = paired; q < columns; ++q) {
      const T* from = p + q * dilation;
      const auto low = load_some(from, 2 * count - 1), high = load_some(from + kLanes<T>, 2 * count - 1 - kLanes<T>);
      f(q, hn::ConcatEven(d, high, low));
    }
#endif
  }
}

/// Outputs [begin, end) of a row that vectors can compute.
using Inner = std::pair<int64_t, int64_t>;

/// Returns the outputs of a row that vectors can compute; kStride is 0 for strides without a vector form.
template <int64_t kStride>
Inner vector_outputs(const PoolGeometry& g) {
  if (kStride == 0 || (kStride == 2 && HWY_TARGET == HWY_SCALAR)) return {g.ow, g.ow};
  return inner_outputs(g.ow, g.w, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w);
}

template <class T, class V>
HWY_INLINE void store_some(V v, T* p, int64_t count) {
  if (count == kLanes<T>) {
    hn::StoreU(v, Simd<T>{}, p);
  } else {
    store_part(v, p, count);
  }
}

/// Stores small integers that are held as floating-point values, as I.
template <class I, class T>
HWY_INLINE void store_codes(SimdVec<T> codes, I* p, int64_t count) {
  const hn::Rebind<I, Simd<T>> d;
  const hn::Rebind<int32_t, Simd<T>> d32;
  const auto whole = [&] {
    if constexpr (sizeof(T) == 8)
      return hn::DemoteTo(d32, codes);
    else
      return hn::ConvertTo(d32, codes);
  }();
  const auto narrow = [&] {
    if constexpr (sizeof(I) == 4)
      return whole;
    else
      return hn::DemoteTo(d, whole);
  }();
  if (count == kLanes<T>) return hn::StoreU(narrow, d, p);
#if HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(narrow, hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  HWY_ALIGN I lanes[kLanes<T>];
  hn::Store(narrow, d, lanes);
  for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
}

template <class T, class I>
HWY_NOINLINE void max_one(const PoolGeometry& g, const T* plane, const WindowRange& rows, int64_t i, int64_t j, T* y,
                          I* indices) {
  const int64_t top = i * g.stride_h - g.padding_h, left = j * g.stride_w - g.padding_w;
  const WindowRange columns(left, g.kernel_w, g.dilation_w, g.w);
  T best = -std::numeric_limits<T>::infinity();
  int64_t code = rows.begin * g.kernel_w + columns.begin;
  for (int64_t p = rows.begin; p < rows.end; ++p) {
    const T* row = plane + (top + p * g.dilation_h) * g.w + left;
    for (int64_t q = columns.begin; q < columns.end; ++q) {
      const T v = row[q * g.dilation_w];
      if (v > best || v != v) {
        best = v;
        code = p * g.kernel_w + q;
      }
    }
  }
  y[j] = best;
  if (indices) indices[j] = static_cast<I>(code);
}

/// Replaces the best values so far, and the codes of their places, by those that are greater or NaN.
template <bool kIndices, class T>
HWY_INLINE void take_better(SimdVec<T> v, SimdVec<T> place, SimdVec<T>& best, SimdVec<T>& code) {
  const auto better = hn::Or(hn::Gt(v, best), hn::IsNaN(v));
  best = hn::IfThenElse(better, v, best);
  if constexpr (kIndices) code = hn::IfThenElse(better, place, code);
}

/// Computes one row of outputs; kColumns is the window's width, 0 for any. `indices` may be null.
template <int64_t kStride, int64_t kColumns, class T, class I>
HWY_INLINE void max_row(const PoolGeometry& g, const Inner& inner, const T* plane, int64_t i, T* y, I* indices) {
  const Simd<T> d;
  const int64_t columns = kColumns ? kColumns : g.kernel_w;
  const int64_t top = i * g.stride_h - g.padding_h;
  const WindowRange rows(top, g.kernel_h, g.dilation_h, g.h);
  const auto [begin, end] = inner;
  for (int64_t j = 0; j < begin; ++j) max_one(g, plane, rows, i, j, y, indices);
  for (int64_t at = begin; at < end; at += kLanes<T>) {
    const int64_t j = vector_start(begin, end, kLanes<T>, at), count = std::min(kLanes<T>, end - j);
    auto best = hn::Set(d, -std::numeric_limits<T>::infinity());
    auto code = hn::Set(d, static_cast<T>(rows.begin * columns));
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      const T* row = plane + (top + p * g.dilation_h) * g.w + j * g.stride_w - g.padding_w;
      each_column<kStride>(row, columns, g.dilation_w, count, [&](int64_t q, SimdVec<T> v) HWY_ATTR {
        take_better<true, T>(v, hn::Set(d, static_cast<T>(p * columns + q)), best, code);
      });
    }
    store_some(best, y + j, count);
    if (indices) store_codes<I, T>(code, indices + j, count);
  }
  for (int64_t j = end; j < g.ow; ++j) max_one(g, plane, rows, i, j, y, indices);
}

/// Calls f(plane, row of the plane, row of all planes) for rows [begin, end) of the outputs of all planes.
template <class T, class F>
HWY_INLINE void for_rows(const PoolGeometry& g, const T* x, int64_t begin, int64_t end, F&& f) {
  const T* plane = x + begin / g.oh * g.h * g.w;
  for (int64_t row = begin, i = begin % g.oh; row < end; ++row) {
    f(plane, i, row);
    if (++i == g.oh) i = 0, plane += g.h * g.w;
  }
}

template <int64_t kStride, int64_t kColumns, class T, class I>
void max_rows(const MaxPool2dArgs& a) {
  const PoolGeometry& g = a.geometry;
  const T* x = static_cast<const T*>(a.x.pointer);
  T* y = static_cast<T*>(a.y.pointer);
  I* indices = static_cast<I*>(a.indices.pointer);
  const Inner inner = vector_outputs<kStride>(g);
  parallel_for(0, g.planes * g.oh, row_grain(g), [&](int64_t b, int64_t e) {
    for_rows(g, x, b, e, [&](const T* plane, int64_t i, int64_t row) HWY_ATTR {
      max_row<kStride, kColumns>(g, inner, plane, i, y + row * g.ow, indices ? indices + row * g.ow : nullptr);
    });
  });
}

/// True for windows of two columns side by side, none cut off, whose rows of outputs vectors can store.
template <class T>
bool has_whole_pairs(const PoolGeometry& g) {
  const bool pairs = g.kernel_w == 2 && g.stride_w == 2 && g.dilation_w == 1 && g.padding_w == 0 && 2 * g.ow <= g.w;
  const bool inside = g.padding_h == 0 && (g.oh - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h < g.h;
  return pairs && inside && (kExactMasks || g.ow >= kLanes<T>);
}

/// Computes the vector of outputs whose windows begin at `top`, in two vectors of each row that load(address) and
/// load_next(address) read; store(best, code) takes the results.
template <bool kIndices, class T, class Load, class LoadNext, class Store>
HWY_INLINE void max_vector_of_pairs(const PoolGeometry& g, const T* top, Load&& load, LoadNext&& load_next,
                                    Store&& store) {
  const Simd<T> d;
  const auto one = hn::Set(d, T(1));
  auto low = load(top), high = load_next(top + kLanes<T>);
  auto best = hn::ConcatEven(d, high, low), code = hn::Zero(d), place = one;
  take_better<kIndices, T>(hn::ConcatOdd(d, high, low), place, best, code);
  for (int64_t p = 1; p < g.kernel_h; ++p) {
    const T* const row = top + p * g.dilation_h * g.w;
    low = load(row), high = load_next(row + kLanes<T>);
    place = hn::Add(place, one);
    take_better<kIndices, T>(hn::ConcatEven(d, high, low), place, best, code);
    place = hn::Add(place, one);
    take_better<kIndices, T>(hn::ConcatOdd(d, high, low), place, best, code);
  }
  store(best, code);
}

/// Does the work of max_rows on windows of two columns in a third to a half of the time: no window is cut off, and rows
/// shorter than a vector all have the same masks.
template <bool kIndices, class T, class I>
void max_of_pairs(const MaxPool2dArgs& a) {
  const PoolGeometry& g = a.geometry;
  const T* x = static_cast<const T*>(a.x.pointer);
  T* y = static_cast<T*>(a.y.pointer);
  I* indices = static_cast<I*>(a.indices.pointer);
  parallel_for(0, g.planes * g.oh, row_grain(g), [&](int64_t b, int64_t e) {
    const Simd<T> d;
    const auto first = [=](int64_t n) HWY_ATTR {
      return hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(n, 0, kLanes<T>)));
    };
    const auto low = first(2 * g.ow), high = first(2 * g.ow - kLanes<T>), whole = first(g.ow);
    const auto load = [=](const T* p) HWY_ATTR { return hn::LoadU(d, p); };
    for_rows(g, x, b, e, [&](const T* plane, int64_t i, int64_t row) HWY_ATTR {
      const T* top = plane + i * g.stride_h * g.w;
      const auto store = [&](int64_t at) HWY_ATTR {
        return [&, at](SimdVec<T> best, SimdVec<T> code) HWY_ATTR {
          hn::StoreU(best, d, y + at);
          if constexpr (kIndices) store_codes<I, T>(code, indices + at, kLanes<T>);
        };
      };
      if (g.ow >= kLanes<T>) {
        for (int64_t at = 0; at < g.ow; at += kLanes<T>) {
          const int64_t j = vector_start(0, g.ow, kLanes<T>, at);
          max_vector_of_pairs<kIndices, T>(g, top + 2 * j, load, load, store(row * g.ow + j));
        }
        return;
      }
      const auto load_low = [=](const T* p) HWY_ATTR { return hn::MaskedLoad(low, d, p); };
      const auto load_high = [=](const T* p) HWY_ATTR { return hn::MaskedLoad(high, d, p); };
      const int64_t at = row * g.ow;
      if (kSlowMaskedStores && e * g.ow - at >= kLanes<T>) {  // the next rows overwrite what is stored too much
        max_vector_of_pairs<kIndices, T>(g, top, load_low, load_high, store(at));
        return;
      }
      max_vector_of_pairs<kIndices, T>(g, top, load_low, load_high, [&](SimdVec<T> best, SimdVec<T> code) HWY_ATTR {
        hn::BlendedStore(best, whole, d, y + at);
        if constexpr (kIndices) store_codes<I, T>(code, indices + at, g.ow);
      });
    });
  });
}

template <class T, class I>
void max_typed(const MaxPool2dArgs& a) {
  const PoolGeometry& g = a.geometry;
  if constexpr (sizeof(I) == 1) {  // int32 indices are for windows of more than 256 elements
    // Networks pool by 2 x 2 so often that such windows have a form of their own, and one for inference.
    if (has_whole_pairs<T>(g)) return a.indices.pointer ? max_of_pairs<true, T, I>(a) : max_of_pairs<false, T, I>(a);
    if (g.stride_w == 2 && g.kernel_w == 3 && g.dilation_w == 1) return max_rows<2, 3, T, I>(a);
  }
  if (g.stride_w == 2) return max_rows<2, 0, T, I>(a);
  if (g.stride_w == 1) return max_rows<1, 0, T, I>(a);
  max_rows<0, 0, T, I>(a);
}

void max_pool(const MaxPool2dArgs& a) {
  const bool bytes = a.geometry.index_type() == DType::u8;
  if (a.x.dtype == DType::f64) return bytes ? max_typed<double, uint8_t>(a) : max_typed<double, int32_t>(a);
  return bytes ? max_typed<float, uint8_t>(a) : max_typed<float, int32_t>(a);
}

template <class T>
HWY_NOINLINE T average_one(const PoolGeometry& g, const T* plane, const WindowRange& rows, int64_t top, int64_t j,
                           int64_t height, bool count_padding) {
  const int64_t left = j * g.stride_w - g.padding_w;
  const WindowRange columns(left, g.kernel_w, 1, g.w);
  T sum = 0;
  for (int64_t p = rows.begin; p < rows.end; ++p)
    for (int64_t q = columns.begin; q < columns.end; ++q) sum += plane[(top + p) * g.w + left + q];
  return sum / static_cast<T>(height * average_count(left, g.kernel_w, g.padding_w, g.w, count_padding));
}

template <int64_t kStride, class T>
void average_row(const AvgPool2dArgs& a, const Inner& inner, const T* plane, int64_t i, T* y) {
  const Simd<T> d;
  const PoolGeometry& g = a.geometry;
  const int64_t top = i * g.stride_h - g.padding_h;
  const int64_t height = average_count(top, g.kernel_h, g.padding_h, g.h, a.count_include_pad);
  const WindowRange rows(top, g.kernel_h, 1, g.h);
  const auto [begin, end] = inner;
  for (int64_t j = 0; j < begin; ++j) y[j] = average_one(g, plane, rows, top, j, height, a.count_include_pad);
  const auto divisor = hn::Set(d, static_cast<T>(height * g.kernel_w));
  for (int64_t at = begin; at < end; at += kLanes<T>) {
    const int64_t j = vector_start(begin, end, kLanes<T>, at), count = std::min(kLanes<T>, end - j);
    auto sum = hn::Zero(d);
    for (int64_t p = rows.begin; p < rows.end; ++p)
      each_column<kStride>(plane + (top + p) * g.w + j * g.stride_w - g.padding_w, g.kernel_w, int64_t{1}, count,
                           [&](int64_t, SimdVec<T> v) HWY_ATTR { sum = hn::Add(sum, v); });
    store_some(hn::Div(sum, divisor), y + j, count);
  }
  for (int64_t j = end; j < g.ow; ++j) y[j] = average_one(g, plane, rows, top, j, height, a.count_include_pad);
}

template <int64_t kStride, class T>
void average_rows(const AvgPool2dArgs& a) {
  const PoolGeometry& g = a.geometry;
  const T* x = static_cast<const T*>(a.x.pointer);
  T* y = static_cast<T*>(a.y.pointer);
  const Inner inner = vector_outputs<kStride>(a.geometry);
  parallel_for(0, g.planes * g.oh, row_grain(g), [&](int64_t b, int64_t e) {
    for_rows(g, x, b, e, [&](const T* plane, int64_t i, int64_t row) HWY_ATTR {
      average_row<kStride>(a, inner, plane, i, y + row * g.ow);
    });
  });
}

template <class T>
void average_typed(const AvgPool2dArgs& a) {
  if (a.geometry.stride_w == 2) return average_rows<2, T>(a);
  if (a.geometry.stride_w == 1) return average_rows<1, T>(a);
  average_rows<0, T>(a);
}

void avg_pool(const AvgPool2dArgs& a) {
  if (a.x.dtype == DType::f64) return average_typed<double>(a);
  average_typed<float>(a);
}

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
namespace cpu {
HWY_EXPORT(max_pool);
HWY_EXPORT(avg_pool);

namespace {
void max_pool2d(const MaxPool2dArgs& a, Stream&) { HWY_DYNAMIC_DISPATCH(max_pool)(a); }
void avg_pool2d(const AvgPool2dArgs& a, Stream&) { HWY_DYNAMIC_DISPATCH(avg_pool)(a); }
}  // namespace
}  // namespace cpu

LEVIN_KERNEL_OF(MaxPool2dArgs, max_pool2d, cpu::max_pool2d, kNot16BitFloats);
LEVIN_KERNEL_OF(AvgPool2dArgs, avg_pool2d, cpu::avg_pool2d, kNot16BitFloats);

}  // namespace levin::kernels
#endif
