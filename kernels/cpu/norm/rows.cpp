// SIMD functions of batch and layer norm. Sums accumulate in double.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm/rows.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/norm/norm.h"
#include "kernels/cpu/wide-inl.h"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

using Wide = SimdVec<double>;
constexpr int64_t kWide = kLanes<double>;

/// Returns how many elements ahead to prefetch: kStreamAhead, or if rows are shorter, the distance to the same place of
/// a later row, with about kStreamAhead elements of the rows in between.
template <class T>
HWY_INLINE int64_t ahead_in(const ChannelPlanes& p) {
  const int64_t row = p.channels * p.n;
  return row < kStreamAhead<T> ? kStreamAhead<T> / row * p.step : kStreamAhead<T>;
}

/// Calls add(channel, offset, a0, a1, b0, b1) for each plane, in the order of memory. It adds the plane's elements to
/// the channel's sums: the first is a0 + a1, the second b0 + b1.
template <class T, class F>
HWY_INLINE void sum_planes(const ChannelPlanes& p, double* sums, F&& add) {
  const Simd<double> d;
  HWY_ALIGN double partial[Channels<T>::kMost * 4 * kWide];  // (channels, 4, kWide)
  std::fill(partial, partial + p.channels * 4 * kWide, 0.0);
  for (int64_t r = 0; r < p.rows; ++r)
    for (int64_t c = 0; c < p.channels; ++c) {
      double* const own = partial + c * 4 * kWide;
      Wide a0 = hn::Load(d, own), a1 = hn::Load(d, own + kWide);
      Wide b0 = hn::Load(d, own + 2 * kWide), b1 = hn::Load(d, own + 3 * kWide);
      add(c, r * p.step + c * p.n, a0, a1, b0, b1);
      hn::Store(a0, d, own);
      hn::Store(a1, d, own + kWide);
      hn::Store(b0, d, own + 2 * kWide);
      hn::Store(b1, d, own + 3 * kWide);
    }
  for (int64_t c = 0; c < p.channels; ++c) {
    const double* const own = partial + c * 4 * kWide;
    sums[c] = total(hn::Add(hn::Load(d, own), hn::Load(d, own + kWide)));
    sums[p.channels + c] = total(hn::Add(hn::Load(d, own + 2 * kWide), hn::Load(d, own + 3 * kWide)));
  }
}

/// Calls f(channel, offset) for each plane, in the order of memory.
template <class F>
HWY_INLINE void for_planes(const ChannelPlanes& p, F&& f) {
  for (int64_t r = 0; r < p.rows; ++r)
    for (int64_t c = 0; c < p.channels; ++c) f(c, r * p.step + c * p.n);
}

template <class T>
void moments(const T* x, ChannelPlanes p, double* sums) {
  const Simd<double> d;
  double origin[Channels<T>::kMost];
  for (int64_t c = 0; c < p.channels; ++c) origin[c] = static_cast<double>(origin_at(x[c * p.n]));
  const int64_t ahead = ahead_in<T>(p);
  sum_planes<T>(p, sums, [&](int64_t c, int64_t at, Wide& a0, Wide& a1, Wide& b0, Wide& b1) HWY_ATTR {
    const T* const plane = x + at;
    const Wide zero = hn::Set(d, origin[c]);
    int64_t i = 0;
    for (; i + 2 * kWide <= p.n; i += 2 * kWide) {
      prefetch_to_read(plane + i + ahead);
      const Wide u = hn::Sub(load_wide(plane + i), zero), v = hn::Sub(load_wide(plane + i + kWide), zero);
      a0 = hn::Add(a0, u);
      a1 = hn::Add(a1, v);
      b0 = hn::MulAdd(u, u, b0);
      b1 = hn::MulAdd(v, v, b1);
    }
    for (; i < p.n; i += kWide) {
      const int64_t rest = p.n - i;
      const Wide x1 = rest >= kWide ? load_wide(plane + i) : load_wide_part(plane + i, rest);
      const Wide u = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(rest)), hn::Sub(x1, zero));
      a0 = hn::Add(a0, u);
      b0 = hn::MulAdd(u, u, b0);
    }
  });
}

template <class T>
void affine(const T* x, T* y, ChannelPlanes p, const Channels<T>& all) {
  const Simd<T> d;
  const int64_t ahead = ahead_in<T>(p);
  for_planes(p, [&](int64_t c, int64_t at) HWY_ATTR {
    const auto mean = hn::Set(d, all.mean[c]), scale = hn::Set(d, all.scale[c]), shift = hn::Set(d, all.shift[c]);
    for_vectors<T>(p.n, [&](const auto& load, const auto& store) HWY_ATTR {
      store.streamed(hn::MulAdd(hn::Sub(load.streamed(x + at, ahead), mean), scale, shift), y + at, ahead);
    });
  });
}

template <class T>
void gradient_sums(const T* g, const T* x, ChannelPlanes p, const Channels<T>& all, double* sums) {
  const Simd<double> d;
  const int64_t ahead = ahead_in<T>(p);
  sum_planes<T>(p, sums, [&](int64_t c, int64_t at, Wide& a0, Wide& a1, Wide& b0, Wide& b1) HWY_ATTR {
    const T *const gs = g + at, *const xs = x + at;
    const Wide mean = hn::Set(d, static_cast<double>(all.mean[c]));
    int64_t i = 0;
    for (; i + 2 * kWide <= p.n; i += 2 * kWide) {
      prefetch_to_read(gs + i + ahead);
      prefetch_to_read(xs + i + ahead);
      const Wide u = load_wide(gs + i), v = load_wide(gs + i + kWide);
      a0 = hn::Add(a0, u);
      a1 = hn::Add(a1, v);
      b0 = hn::MulAdd(u, hn::Sub(load_wide(xs + i), mean), b0);
      b1 = hn::MulAdd(v, hn::Sub(load_wide(xs + i + kWide), mean), b1);
    }
    for (; i < p.n; i += kWide) {
      const int64_t rest = p.n - i;
      const bool whole = rest >= kWide;
      const Wide u = whole ? load_wide(gs + i) : load_wide_part(gs + i, rest);  // zero in the lanes beyond the end
      const Wide v = whole ? load_wide(xs + i) : load_wide_part(xs + i, rest);
      a0 = hn::Add(a0, u);
      b0 = hn::MulAdd(u, hn::Sub(v, mean), b0);
    }
  });
}

template <class T>
void input_gradient(const T* g, const T* x, T* dx, ChannelPlanes p, const Channels<T>& all) {
  const Simd<T> d;
  const int64_t ahead = ahead_in<T>(p);
  for_planes(p, [&](int64_t c, int64_t at) HWY_ATTR {
    const auto mean = hn::Set(d, all.mean[c]), scale = hn::Set(d, all.scale[c]);
    const auto g_mean = hn::Set(d, all.g_mean[c]), slope = hn::Set(d, all.slope[c]);
    for_vectors<T>(p.n, [&](const auto& load, const auto& store) HWY_ATTR {
      const auto centred = hn::Sub(load.streamed(x + at, ahead), mean);
      const auto g_centred = hn::Sub(load.streamed(g + at, ahead), g_mean);
      store.streamed(hn::Mul(scale, hn::NegMulAdd(centred, slope, g_centred)), dx + at, ahead);
    });
  });
}

template <class T>
void combined(const T* g, const T* x, T* dx, int64_t n, T a, T b, T c) {
  const Simd<T> d;
  const auto of_g = hn::Set(d, a), of_x = hn::Set(d, b), shift = hn::Set(d, c);
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    store.streamed(hn::MulAdd(load.streamed(x), of_x, hn::MulAdd(load.streamed(g), of_g, shift)), dx);
  });
}

template <class T>
void moments_columns(const T* x, ChannelPlanes p, double* sums) {
  const T* const first = x;
  const Simd<double> wide;
  const auto about = [&](Wide v) HWY_ATTR { return hn::IfThenElseZero(hn::IsFinite(v), v); };  // as origin_at()
  for (int64_t i = 0; i < 2 * p.channels; ++i) sums[i] = 0.0;
  for (int64_t r = 0; r < p.rows; ++r, x += p.step)
    for (int64_t i = 0; i < p.channels; i += kWide) {
      const int64_t rest = p.channels - i;
      if (rest >= kWide) {
        const Wide u = hn::Sub(load_wide(x + i), about(load_wide(first + i)));
        hn::StoreU(hn::Add(hn::LoadU(wide, sums + i), u), wide, sums + i);
        hn::StoreU(hn::MulAdd(u, u, hn::LoadU(wide, sums + p.channels + i)), wide, sums + p.channels + i);
      } else {
        const Wide u = hn::Sub(load_wide_part(x + i, rest), about(load_wide_part(first + i, rest)));
        store_part(hn::Add(load_part(sums + i, rest), u), sums + i, rest);
        store_part(hn::MulAdd(u, u, load_part(sums + p.channels + i, rest)), sums + p.channels + i, rest);
      }
    }
}

template <class T>
void affine_columns(const T* x, T* y, ChannelPlanes p, const Channels<T>& c) {
  for (int64_t r = 0; r < p.rows; ++r, x += p.step, y += p.step)
    for (int64_t i = 0; i < p.channels; i += kLanes<T>)
      store_row(hn::MulAdd(hn::Sub(load_row(x, i, p.channels), load_row(c.mean, i, p.channels)),
                           load_row(c.scale, i, p.channels), load_row(c.shift, i, p.channels)), y, i, p.channels);
}

template <class T>
void gradient_sums_columns(const T* g, const T* x, ChannelPlanes p, const Channels<T>& c, double* sums) {
  for (int64_t i = 0; i < 2 * p.channels; ++i) sums[i] = 0.0;
  for (int64_t r = 0; r < p.rows; ++r, x += p.step, g += p.step)
    for (int64_t i = 0; i < p.channels; i += kWide) {
      const int64_t rest = p.channels - i;
      if (rest >= kWide) {
        const Simd<double> d;
        const Wide u = load_wide(g + i), v = hn::Sub(load_wide(x + i), load_wide(c.mean + i));
        hn::StoreU(hn::Add(hn::LoadU(d, sums + i), u), d, sums + i);
        hn::StoreU(hn::MulAdd(u, v, hn::LoadU(d, sums + p.channels + i)), d, sums + p.channels + i);
      } else {
        const Wide u = load_wide_part(g + i, rest),
                   v = hn::Sub(load_wide_part(x + i, rest), load_wide_part(c.mean + i, rest));
        store_part(hn::Add(load_part(sums + i, rest), u), sums + i, rest);
        store_part(hn::MulAdd(u, v, load_part(sums + p.channels + i, rest)), sums + p.channels + i, rest);
      }
    }
}

template <class T>
void input_gradient_columns(const T* g, const T* x, T* dx, ChannelPlanes p, const Channels<T>& c) {
  for (int64_t r = 0; r < p.rows; ++r, x += p.step, g += p.step, dx += p.step)
    for (int64_t i = 0; i < p.channels; i += kLanes<T>) {
      const auto centred = hn::Sub(load_row(x, i, p.channels), load_row(c.mean, i, p.channels));
      const auto g_centred = hn::Sub(load_row(g, i, p.channels), load_row(c.g_mean, i, p.channels));
      const auto slope = load_row(c.slope, i, p.channels);
      store_row(hn::Mul(load_row(c.scale, i, p.channels), hn::NegMulAdd(centred, slope, g_centred)), dx, i, p.channels);
    }
}

template <class T>
void layer(const T* x, const T* weight, const T* bias, T* y, int64_t n, double eps, T* mean_out, T* rstd_out) {
  const Simd<T> d;
  const double sum = wide_sum<T>(n, [&](const auto& load) HWY_ATTR { return load.streamed(x); });
  const double average = sum / static_cast<double>(n);
  const auto mean = hn::Set(d, static_cast<T>(average));
  const double squares = wide_sum<T>(n, [&](const auto& load) HWY_ATTR {
    const auto centred = hn::Sub(load(x), mean);
    return hn::Mul(centred, centred);
  });
  const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
  const auto scale = hn::Set(d, static_cast<T>(rstd));
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    auto v = hn::Mul(hn::Sub(load(x), mean), scale);
    if (weight) v = hn::Mul(v, load(weight));
    if (bias) v = hn::Add(v, load(bias));
    store.streamed(v, y);
  });
  if (mean_out) *mean_out = static_cast<T>(average);
  if (rstd_out) *rstd_out = static_cast<T>(rstd);
}

template <class T>
void rms(const T* x, const T* weight, T* y, int64_t n, double eps, T* rstd_out) {
  const Simd<T> d;
  const double squares = wide_sum<T>(n, [&](const auto& load) HWY_ATTR {
    const auto v = load.streamed(x);
    return hn::Mul(v, v);
  });
  const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
  const auto scale = hn::Set(d, static_cast<T>(rstd));
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    const auto v = hn::Mul(load(x), scale);
    store.streamed(weight ? hn::Mul(v, load(weight)) : v, y);
  });
  if (rstd_out) *rstd_out = static_cast<T>(rstd);
}

/// The gradient of layer norm, or of RMS norm if rows are not centred.
template <bool centred, class T>
void layer_backward(const T* g, const T* x, const T* weight, T mean_value, T rstd_value, T* dx, T* dweight, T* dbias,
                    int64_t n) {
  const Simd<T> d;
  const auto mean = hn::Set(d, mean_value), rstd = hn::Set(d, rstd_value);
  Wide h_sum = hn::Zero(Simd<double>()), hx_sum = h_sum;
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    const auto gi = load(g), xh = hn::Mul(hn::Sub(load(x), mean), rstd), h = weight ? hn::Mul(gi, load(weight)) : gi;
    if constexpr (centred) h_sum = add_wide(h_sum, h);  // h is zero in the lanes beyond the end
    hx_sum = add_wide(hx_sum, hn::Mul(h, xh));
    if (dweight) store(hn::MulAdd(gi, xh, load(dweight)), dweight);
    if (dbias) store(hn::Add(gi, load(dbias)), dbias);
  });
  if (!dx) return;
  const double count = static_cast<double>(n);
  const auto h_mean = hn::Set(d, static_cast<T>(total(h_sum) / count)),
             slope = hn::Set(d, static_cast<T>(total(hx_sum) / count));
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    const auto gi = load(g), xh = hn::Mul(hn::Sub(load(x), mean), rstd), h = weight ? hn::Mul(gi, load(weight)) : gi;
    store(hn::Mul(rstd, hn::NegMulAdd(xh, slope, centred ? hn::Sub(h, h_mean) : h)), dx);
  });
}

template <class T>
inline constexpr NormRows<T> kNormRows{{moments<T>, affine<T>, gradient_sums<T>, input_gradient<T>},
                                       {moments_columns<T>, affine_columns<T>, gradient_sums_columns<T>,
                                        input_gradient_columns<T>},
                                       combined<T>,
                                       layer<T>,
                                       layer_backward<true, T>,
                                       rms<T>,
                                       layer_backward<false, T>};

const NormRows<float>* norm_rows_f32() { return &kNormRows<float>; }
const NormRows<double>* norm_rows_f64() { return &kNormRows<double>; }

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(norm_rows_f32);
HWY_EXPORT(norm_rows_f64);

const NormRows<float>& norm_rows(float) { return *HWY_DYNAMIC_DISPATCH(norm_rows_f32)(); }
const NormRows<double>& norm_rows(double) { return *HWY_DYNAMIC_DISPATCH(norm_rows_f64)(); }
}  // namespace levin::kernels::cpu
#endif
