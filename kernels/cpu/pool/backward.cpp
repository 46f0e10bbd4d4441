// Gradients of pooling, plane by plane, so that every sum has a fixed order.
#include "kernels/cpu/targets.h"
#include "kernels/src/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool/backward.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/simd-inl.h"

#include <levin/core/parallel.h>

#include <algorithm>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

/// Loads bytes as whole numbers of type T.
template <class T>
HWY_INLINE SimdVec<T> load_codes(const uint8_t* p, int64_t count) {
  const Simd<T> d;
  const hn::Rebind<uint8_t, Simd<T>> bytes;
  const hn::Rebind<int32_t, Simd<T>> d32;
#if HWY_TARGET <= HWY_AVX3
  const auto narrow =
      count < kLanes<T> ? hn::MaskedLoad(hn::FirstN(bytes, static_cast<size_t>(count)), bytes, p) : hn::LoadU(bytes, p);
#else
  HWY_ALIGN uint8_t lanes[kLanes<T>] = {};
  if (count < kLanes<T>)
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
  const auto narrow = hn::LoadU(bytes, count < kLanes<T> ? lanes : p);
#endif
  const auto whole = hn::PromoteTo(d32, narrow);
  if constexpr (sizeof(T) == 8)
    return hn::PromoteTo(d, whole);
  else
    return hn::ConvertTo(d, whole);
}

/// Stores the first `count` of two vectors' elements, a[0], b[0], a[1], b[1] and so on.
template <class T>
HWY_INLINE void store_interleaved(SimdVec<T> a, SimdVec<T> b, T* p, int64_t count) {
  const Simd<T> d;
  if (count == 2 * kLanes<T>) return hn::StoreInterleaved2(a, b, d, p);
  HWY_ALIGN T both[2 * kLanes<T>];
  hn::StoreInterleaved2(a, b, d, both);
  for (int64_t i = 0; i < count; i += kLanes<T>) {
    if (count - i >= kLanes<T>) {
      hn::StoreU(hn::Load(d, both + i), d, p + i);
    } else {
      store_part(hn::Load(d, both + i), p + i, count - i);
    }
  }
}

/// Handles the adjacent 2 x 2 windows of planes [0, planes): every element of dx is written. What a vector writes
/// beyond its row, the next rows overwrite.
template <class T>
void unpool_2x2(const PoolGeometry& g, int64_t planes, const T* dy, const uint8_t* indices, T* dx) {
  const Simd<T> d;
  const T* const dy_end = dy + planes * g.oh * g.ow;
  for (int64_t plane = 0; plane < planes; ++plane, dx += g.h * g.w) {
    for (int64_t i = 0; i < g.oh; ++i, dy += g.ow, indices += g.ow) {
      T* upper = dx + 2 * i * g.w;
      T* lower = upper + g.w;
      for (int64_t at = 0; at < g.ow; at += kLanes<T>) {
        const int64_t j = vector_start(0, g.ow, kLanes<T>, at);
        // Where dy has room for a vector, dx has room for two.
        const bool room = dy_end - (dy + j) >= kLanes<T>;
        const int64_t count = room ? kLanes<T> : g.ow - j;
        const auto grad = room ? hn::LoadU(d, dy + j) : load_part(dy + j, count);
        const auto code = load_codes<T>(indices + j, count);
        const auto at_place = [&](int place) HWY_ATTR {
          return hn::IfThenElseZero(hn::Eq(code, hn::Set(d, static_cast<T>(place))), grad);
        };
        store_interleaved(at_place(0), at_place(1), upper + 2 * j, 2 * count);
        store_interleaved(at_place(2), at_place(3), lower + 2 * j, 2 * count);
      }
      if (g.w % 2) upper[g.w - 1] = lower[g.w - 1] = T(0);
    }
    if (g.h % 2) std::fill_n(dx + (g.h - 1) * g.w, g.w, T(0));
  }
}

template <class T>
bool try_2x2(const MaxPool2dBackwardArgs& a) {
  const PoolGeometry& g = a.geometry;
  const bool fits = g.kernel_h == 2 && g.kernel_w == 2 && g.stride_h == 2 && g.stride_w == 2 && g.padding_h == 0 &&
                    g.padding_w == 0 && g.dilation_h == 1 && g.dilation_w == 1 && g.oh == g.h / 2 && g.ow == g.w / 2;
  if (!fits) return false;
  parallel_for(0, g.planes, plane_grain(g), [&](int64_t b, int64_t e) {
    unpool_2x2(g, e - b, static_cast<const T*>(a.dy.pointer) + b * g.oh * g.ow,
               static_cast<const uint8_t*>(a.indices.pointer) + b * g.oh * g.ow,
               static_cast<T*>(a.dx.pointer) + b * g.h * g.w);
  });
  return true;
}

#else

template <class T>
bool try_2x2(const MaxPool2dBackwardArgs&) {
  return false;
}

#endif

bool unpool_in_vectors(const MaxPool2dBackwardArgs& a) {
  return a.dx.dtype == DType::f64 ? try_2x2<double>(a) : try_2x2<float>(a);
}

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
namespace cpu {
HWY_EXPORT(unpool_in_vectors);

namespace {

/// Returns the offset of each position of a window from the window's first element.
std::vector<int64_t> place_offsets(const PoolGeometry& g) {
  std::vector<int64_t> offsets;
  for (int64_t p = 0; p < g.kernel_h; ++p)
    for (int64_t q = 0; q < g.kernel_w; ++q) offsets.push_back(p * g.dilation_h * g.w + q * g.dilation_w);
  return offsets;
}

/// Calls f(output, element of x), both counted from the plane's first, for each output of plane `plane`.
template <class I, class F>
void each_choice(const PoolGeometry& g, const std::vector<int64_t>& offsets, const I* indices, F&& f) {
  for (int64_t i = 0; i < g.oh; ++i) {
    const int64_t first = (i * g.stride_h - g.padding_h) * g.w - g.padding_w;
    for (int64_t j = 0; j < g.ow; ++j) {
      const int64_t at = i * g.ow + j;
      f(at, first + j * g.stride_w + offsets[static_cast<std::size_t>(indices[at])]);
    }
  }
}

template <class T, class I>
void unpool(const MaxPool2dBackwardArgs& a) {
  const PoolGeometry& g = a.geometry;
  const auto offsets = place_offsets(g);
  parallel_for(0, g.planes, plane_grain(g), [&](int64_t b, int64_t e) {
    for (int64_t plane = b; plane < e; ++plane) {
      const T* dy = static_cast<const T*>(a.dy.pointer) + plane * g.oh * g.ow;
      T* dx = static_cast<T*>(a.dx.pointer) + plane * g.h * g.w;
      std::fill_n(dx, g.h * g.w, T(0));
      each_choice(g, offsets, static_cast<const I*>(a.indices.pointer) + plane * g.oh * g.ow,
                  [&](int64_t out, int64_t in) { dx[in] += dy[out]; });
    }
  });
}

template <class T, class I>
void pick(const MaxPool2dArgs& a) {
  const PoolGeometry& g = a.geometry;
  const auto offsets = place_offsets(g);
  parallel_for(0, g.planes, plane_grain(g), [&](int64_t b, int64_t e) {
    for (int64_t plane = b; plane < e; ++plane) {
      const T* x = static_cast<const T*>(a.x.pointer) + plane * g.h * g.w;
      T* y = static_cast<T*>(a.y.pointer) + plane * g.oh * g.ow;
      each_choice(g, offsets, static_cast<const I*>(a.indices.pointer) + plane * g.oh * g.ow,
                  [&](int64_t out, int64_t in) { y[out] = x[in]; });
    }
  });
}

template <class F>
void dispatch_pool(DType values, DType indices, F&& f) {
  const bool bytes = indices == DType::u8;
  if (values == DType::f64)
    return bytes ? f.template operator()<double, std::uint8_t>() : f.template operator()<double, std::int32_t>();
  return bytes ? f.template operator()<float, std::uint8_t>() : f.template operator()<float, std::int32_t>();
}

void max_pool2d_backward(const MaxPool2dBackwardArgs& a, Stream&) {
  if (HWY_DYNAMIC_DISPATCH(unpool_in_vectors)(a)) return;
  dispatch_pool(a.dx.dtype, a.geometry.index_type(), [&]<class T, class I>() { unpool<T, I>(a); });
}

void max_pool2d_pick(const MaxPool2dArgs& a, Stream&) {
  dispatch_pool(a.x.dtype, a.geometry.index_type(), [&]<class T, class I>() { pick<T, I>(a); });
}

/// Computes dx of one plane: every output's share is added to all elements of its window.
template <class T>
void spread_plane(const AvgPool2dArgs& a, const T* dy, T* dx) {
  const PoolGeometry& g = a.geometry;
  std::fill_n(dx, g.h * g.w, T(0));
  for (int64_t i = 0; i < g.oh; ++i) {
    const int64_t top = i * g.stride_h - g.padding_h;
    const int64_t height = average_count(top, g.kernel_h, g.padding_h, g.h, a.count_include_pad);
    const WindowRange rows(top, g.kernel_h, 1, g.h);
    for (int64_t j = 0; j < g.ow; ++j) {
      const int64_t left = j * g.stride_w - g.padding_w;
      const WindowRange columns(left, g.kernel_w, 1, g.w);
      const T share = dy[i * g.ow + j] /
                      static_cast<T>(height * average_count(left, g.kernel_w, g.padding_w, g.w, a.count_include_pad));
      for (int64_t p = rows.begin; p < rows.end; ++p)
        for (int64_t q = columns.begin; q < columns.end; ++q) dx[(top + p) * g.w + left + q] += share;
    }
  }
}

template <class T>
void spread(const AvgPool2dArgs& a) {
  const PoolGeometry& g = a.geometry;
  parallel_for(0, g.planes, plane_grain(g), [&](int64_t b, int64_t e) {
    for (int64_t plane = b; plane < e; ++plane)
      spread_plane(a, static_cast<const T*>(a.y.pointer) + plane * g.oh * g.ow,
                   static_cast<T*>(a.x.pointer) + plane * g.h * g.w);
  });
}

void avg_pool2d_backward(const AvgPool2dArgs& a, Stream&) {
  if (a.x.dtype == DType::f64) return spread<double>(a);
  spread<float>(a);
}

}  // namespace
}  // namespace cpu

LEVIN_KERNEL_OF(MaxPool2dBackwardArgs, max_pool2d_backward, cpu::max_pool2d_backward, kNot16BitFloats);
LEVIN_KERNEL_OF(MaxPool2dArgs, max_pool2d_pick, cpu::max_pool2d_pick, kNot16BitFloats);
LEVIN_KERNEL_OF(AvgPool2dArgs, avg_pool2d_backward, cpu::avg_pool2d_backward, kNot16BitFloats);

}  // namespace levin::kernels
#endif
