// Planes of the depthwise convolution: neighbouring pixels of a row are the lanes.
#include "kernels/cpu/conv/ops.h"
#include "kernels/cpu/simd-inl.h"

#if defined(LEVIN_KERNELS_CPU_CONV_PLANE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_CONV_PLANE_INL_H
#undef LEVIN_KERNELS_CPU_CONV_PLANE_INL_H
#else
#define LEVIN_KERNELS_CPU_CONV_PLANE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

/// Computes R rows by V vectors of columns; if `partial`, only `valid` lanes of the one vector.
template <int R, int V, bool partial, class T>
HWY_INLINE void plane_tile(const PlaneResult<T>& p, const T* source, T* out, int64_t valid) {
  static_assert(V == 1 || !partial);
  const Simd<T> d;
  SimdVec<T> acc[R][V];
  HWY_UNROLL(8)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) acc[i][v] = hn::Set(d, p.bias);
  }
  for (int64_t t = 0; t < p.taps; ++t) {
    const auto weight = hn::Set(d, p.weights[t]);
    const T* x = source + p.offsets[t];
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i, x += p.source_step) {
      HWY_UNROLL(4)
      for (int v = 0; v < V; ++v) {
        const auto pixels = partial ? load_part(x, valid) : hn::LoadU(d, x + v * kLanes<T>);
        acc[i][v] = hn::MulAdd(weight, pixels, acc[i][v]);
      }
    }
  }
  HWY_UNROLL(8)
  for (int i = 0; i < R; ++i, out += p.out_step) {
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) {
      if constexpr (partial) {
        store_part(acc[i][v], out, valid);
      } else {
        hn::StoreU(acc[i][v], d, out + v * kLanes<T>);
      }
    }
  }
}

/// Computes R rows; with V vectors at once, R * V sums are in flight.
template <int R, int V, class T>
HWY_NOINLINE void plane_rows(const PlaneResult<T>& p, int64_t row) {
  constexpr int64_t lanes = kLanes<T>;
  const T* source = p.source + row * p.source_step;
  T* out = p.out + row * p.out_step;
  int64_t c = 0;
  for (; c + V * lanes <= p.columns; c += V * lanes) plane_tile<R, V, false>(p, source + c, out + c, lanes);
  for (; c + lanes <= p.columns; c += lanes) plane_tile<R, 1, false>(p, source + c, out + c, lanes);
  if (c < p.columns) plane_tile<R, 1, true>(p, source + c, out + c, p.columns - c);
}

template <class T>
void plane_result(const PlaneResult<T>& p) {
  int64_t row = 0;
  if (p.columns < 2 * kLanes<T>)
    for (; row + 8 <= p.rows; row += 8) plane_rows<8, 1>(p, row);
  for (; row + 4 <= p.rows; row += 4) plane_rows<4, 2>(p, row);
  for (; row < p.rows; ++row) plane_rows<1, 4>(p, row);
}

/// Computes N taps from `first` on.
template <int N, class T>
HWY_NOINLINE void plane_taps(const PlaneWeights<T>& p, int64_t first) {
  const Simd<T> d;
  constexpr int64_t lanes = kLanes<T>;
  SimdVec<T> acc[N];
  HWY_UNROLL(9)
  for (int i = 0; i < N; ++i) acc[i] = hn::Zero(d);
  for (int64_t row = 0; row < p.rows; ++row) {
    const T* const source = p.source + row * p.source_step;
    const T* const gradient = p.gradient + row * p.columns;
    int64_t c = 0;
    for (; c + lanes <= p.columns; c += lanes) {
      const auto g = hn::LoadU(d, gradient + c);
      HWY_UNROLL(9)
      for (int i = 0; i < N; ++i) acc[i] = hn::MulAdd(g, hn::LoadU(d, source + p.offsets[first + i] + c), acc[i]);
    }
    if (c == p.columns) continue;
    const auto g = load_part(gradient + c, p.columns - c);
    HWY_UNROLL(9)
    for (int i = 0; i < N; ++i)
      acc[i] = hn::MulAdd(g, load_part(source + p.offsets[first + i] + c, p.columns - c), acc[i]);
  }
  HWY_UNROLL(9)
  for (int i = 0; i < N; ++i) p.sum[first + i] = hn::GetLane(hn::SumOfLanes(d, acc[i]));
}

template <class T>
void plane_weights(const PlaneWeights<T>& p) {
  int64_t t = 0;
  for (; t + 9 <= p.taps; t += 9) plane_taps<9>(p, t);
  for (; t + 5 <= p.taps; t += 5) plane_taps<5>(p, t);
  for (; t + 3 <= p.taps; t += 3) plane_taps<3>(p, t);
  for (; t < p.taps; ++t) plane_taps<1>(p, t);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
