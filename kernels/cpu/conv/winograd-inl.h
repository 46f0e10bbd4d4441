// Transforms of Winograd's convolutions F(4 x 4, 3 x 3), F(4 x 4, 2 x 2) and F(2 x 2, 5 x 5); channels are the lanes.
// Compiled once for each target.
#include "kernels/cpu/conv/ops.h"
#include "kernels/cpu/conv/winograd_plan.h"
#include "kernels/cpu/simd-inl.h"

#if defined(LEVIN_KERNELS_CPU_CONV_WINOGRAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_CONV_WINOGRAD_INL_H
#undef LEVIN_KERNELS_CPU_CONV_WINOGRAD_INL_H
#else
#define LEVIN_KERNELS_CPU_CONV_WINOGRAD_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

// The points of interpolation are 0 (in tiles of six), a, -a, b, -b and infinity, in this order, with a = sqrt(1/2) and
// b = sqrt(2): a² + b² = 5/2, a² b² = 1.
inline constexpr double kPointA = 0.70710678118654752440, kPointB = 1.41421356237309504880;

/// The tiles for kernels of taps x taps: results and points in each direction, and where the points a, -a, b, -b begin.
template <int taps_>
struct WinogradSizes {
  static constexpr int taps = taps_, tile = detail::winograd_tile(taps), points = tile + taps - 1, first = points - 5;
};

/// One direction of the input's transform, B^T: for each point, the product of the other points' factors of
/// x (x² - a²) (x² - b²), for tiles of five of (x² - a²) (x² - b²).
template <int points>
struct InputLine {
  static constexpr int in = points, out = points, first = points - 5;
  template <class V>
  static HWY_INLINE void apply(const V* x, V* y) {
    using T = hn::TFromV<V>;
    const hn::DFromV<V> d;
    const auto a = hn::Set(d, T(kPointA)), b = hn::Set(d, T(kPointB));
    const auto two = hn::Set(d, T(2)), half = hn::Set(d, T(0.5)), both = hn::Set(d, T(2.5));
    const V* v = x + first;
    const auto even_a = hn::NegMulAdd(two, v[1], v[3]), odd_a = hn::NegMulAdd(two, v[0], v[2]);
    const auto even_b = hn::NegMulAdd(half, v[1], v[3]), odd_b = hn::NegMulAdd(half, v[0], v[2]);
    if constexpr (first == 1) y[0] = hn::NegMulAdd(both, x[2], hn::Add(x[0], x[4]));
    y[first] = hn::MulAdd(a, odd_a, even_a);
    y[first + 1] = hn::NegMulAdd(a, odd_a, even_a);
    y[first + 2] = hn::MulAdd(b, odd_b, even_b);
    y[first + 3] = hn::NegMulAdd(b, odd_b, even_b);
    y[first + 4] = hn::NegMulAdd(both, v[2], hn::Add(v[0], v[4]));
  }
};

/// One direction of the output's transform, A^T: row k has the k-th powers of the points.
template <class Sizes>
struct OutputLine {
  static constexpr int in = Sizes::points, out = Sizes::tile, first = Sizes::first;
  template <class V>
  static HWY_INLINE void apply(const V* x, V* y) {
    using T = hn::TFromV<V>;
    const hn::DFromV<V> d;
    const V* m = x + first;
    const auto sum_a = hn::Add(m[0], m[1]), sum_b = hn::Add(m[2], m[3]);
    const auto a = hn::Mul(hn::Set(d, T(kPointA)), hn::Sub(m[0], m[1]));
    const auto b = hn::Mul(hn::Set(d, T(kPointB)), hn::Sub(m[2], m[3]));
    y[0] = hn::Add(sum_a, sum_b);
    if constexpr (first == 1) y[0] = hn::Add(x[0], y[0]);
    y[1] = hn::Add(a, b);
    if constexpr (out == 4) {
      const auto two = hn::Set(d, T(2)), half = hn::Set(d, T(0.5));
      y[2] = hn::MulAdd(two, sum_b, hn::Mul(half, sum_a));
      y[3] = hn::MulAdd(two, b, hn::MulAdd(half, a, m[4]));
    } else {
      y[1] = hn::Add(y[1], m[4]);
    }
  }
};

/// The transpose of OutputLine, A, for the gradient of the output.
template <class Sizes>
struct GradientLine {
  static constexpr int in = Sizes::tile, out = Sizes::points, first = Sizes::first;
  template <class V>
  static HWY_INLINE void apply(const V* x, V* y) {
    using T = hn::TFromV<V>;
    const hn::DFromV<V> d;
    const auto a = hn::Set(d, T(kPointA)), b = hn::Set(d, T(kPointB));
    auto even_a = x[0], odd_a = x[1], even_b = x[0], odd_b = x[1];
    if constexpr (in == 4) {
      const auto two = hn::Set(d, T(2)), half = hn::Set(d, T(0.5));
      even_a = hn::MulAdd(half, x[2], x[0]), odd_a = hn::MulAdd(half, x[3], x[1]);
      even_b = hn::MulAdd(two, x[2], x[0]), odd_b = hn::MulAdd(two, x[3], x[1]);
    }
    if constexpr (first == 1) y[0] = x[0];
    y[first] = hn::MulAdd(a, odd_a, even_a);
    y[first + 1] = hn::NegMulAdd(a, odd_a, even_a);
    y[first + 2] = hn::MulAdd(b, odd_b, even_b);
    y[first + 3] = hn::NegMulAdd(b, odd_b, even_b);
    y[first + 4] = x[in - 1];
  }
};

// G divides a point's row (1, p, p², ...) by the product of its differences from the other points. For tiles of six
// that is 1 at 0, 2 a² (a² - b²) = -3/2 at a and -a, and 2 b² (b² - a²) = 6 at b and -b; for tiles of five -3 a, 3 a,
// 3 b and -3 b.
inline constexpr double kShareA = -2.0 / 3.0, kShareB = 1.0 / 6.0, kThird = 1.0 / 3.0;

/// One direction of the weight's transform, G.
template <class Sizes>
struct WeightLine {
  static constexpr int in = Sizes::taps, out = Sizes::points;
  template <class V>
  static HWY_INLINE void apply(const V* x, V* y) {
    using T = hn::TFromV<V>;
    const hn::DFromV<V> d;
    const auto put = [&](int at, V even, V odd) HWY_ATTR {
      y[at] = hn::Add(even, odd);
      y[at + 1] = hn::Sub(even, odd);
    };
    if constexpr (in == 2) {
      const auto even = hn::Mul(hn::Set(d, T(kThird)), x[1]);
      put(0, hn::Neg(even), hn::Mul(hn::Set(d, T(-kThird / kPointA)), x[0]));
      put(2, even, hn::Mul(hn::Set(d, T(kThird / kPointB)), x[0]));
    } else {
      const auto half = hn::Set(d, T(0.5)), two = hn::Set(d, T(2));
      auto even_a = hn::MulAdd(half, x[2], x[0]), odd_a = x[1];
      auto even_b = hn::MulAdd(two, x[2], x[0]), odd_b = x[1];
      if constexpr (in == 5) {
        even_a = hn::MulAdd(hn::Set(d, T(0.25)), x[4], even_a), odd_a = hn::MulAdd(half, x[3], odd_a);
        even_b = hn::MulAdd(hn::Set(d, T(4)), x[4], even_b), odd_b = hn::MulAdd(two, x[3], odd_b);
      }
      y[0] = x[0];
      put(1, hn::Mul(hn::Set(d, T(kShareA)), even_a), hn::Mul(hn::Set(d, T(kShareA * kPointA)), odd_a));
      put(3, hn::Mul(hn::Set(d, T(kShareB)), even_b), hn::Mul(hn::Set(d, T(kShareB * kPointB)), odd_b));
    }
    y[out - 1] = x[in - 1];
  }
};

/// The transpose of WeightLine, G^T, for the gradient of the weight.
template <class Sizes>
struct WeightGradientLine {
  static constexpr int in = Sizes::points, out = Sizes::taps, first = Sizes::first;
  template <class V>
  static HWY_INLINE void apply(const V* x, V* y) {
    using T = hn::TFromV<V>;
    const hn::DFromV<V> d;
    const V* m = x + first;
    const auto sum_a = hn::Add(m[0], m[1]), sum_b = hn::Add(m[2], m[3]);
    const auto odd_a = hn::Sub(m[0], m[1]), odd_b = hn::Sub(m[2], m[3]);
    if constexpr (out == 2) {
      y[0] = hn::MulAdd(hn::Set(d, T(-kThird / kPointA)), odd_a, hn::Mul(hn::Set(d, T(kThird / kPointB)), odd_b));
      y[1] = hn::MulAdd(hn::Set(d, T(kThird)), hn::Sub(sum_b, sum_a), m[4]);
    } else {
      const auto half = hn::Set(d, T(0.5)), two = hn::Set(d, T(2)), odd_share = hn::Set(d, T(kShareA * kPointA));
      const auto a = hn::Mul(hn::Set(d, T(kShareA)), sum_a), b = hn::Mul(hn::Set(d, T(kShareB)), sum_b);
      const auto last_odd = hn::Mul(hn::Set(d, T(kShareB * kPointB)), odd_b);
      y[0] = hn::Add(x[0], hn::Add(a, b));
      y[1] = hn::MulAdd(odd_share, odd_a, last_odd);
      if constexpr (out == 3) {
        y[2] = hn::MulAdd(two, b, hn::MulAdd(half, a, m[4]));
      } else {
        y[2] = hn::MulAdd(two, b, hn::Mul(half, a));
        y[3] = hn::MulAdd(two, last_odd, hn::Mul(half, hn::Mul(odd_share, odd_a)));
        y[4] = hn::MulAdd(hn::Set(d, T(4)), b, hn::MulAdd(hn::Set(d, T(0.25)), a, m[4]));
      }
    }
  }
};

/// Applies Line to the rows, then to the columns of a square: load(i, j) gives its elements, store(i, j, v) takes the
/// result's.
template <class Line, class T, class Load, class Store>
HWY_INLINE void transform_square(const Load& load, const Store& store) {
  SimdVec<T> rows[Line::in][Line::out];
  HWY_UNROLL(6)
  for (int i = 0; i < Line::in; ++i) {
    SimdVec<T> x[Line::in];
    HWY_UNROLL(6)
    for (int j = 0; j < Line::in; ++j) x[j] = load(i, j);
    Line::apply(x, rows[i]);
  }
  HWY_UNROLL(6)
  for (int j = 0; j < Line::out; ++j) {
    SimdVec<T> x[Line::in], y[Line::out];
    HWY_UNROLL(6)
    for (int i = 0; i < Line::in; ++i) x[i] = rows[i][j];
    Line::apply(x, y);
    HWY_UNROLL(6)
    for (int i = 0; i < Line::out; ++i) store(i, j, y[i]);
  }
}

/// From pixels to the domain of the transform: the input, the weight and the gradient of the output.
template <class Line, class T>
void winograd_forth(const WinogradTiles<T>& g) {
  const Simd<T> d;
  const int64_t* HWY_RESTRICT offsets = g.offsets;
  const int64_t point_step = g.point_step;
  for (int64_t t = 0; t < g.tiles; ++t) {
    for (int64_t c = 0; c < g.channels; c += kLanes<T>) {
      const T* HWY_RESTRICT from = g.pixels + t * g.pixels_step + c;
      T* HWY_RESTRICT to = g.points + t * g.points_step + c;
      transform_square<Line, T>(
          [=](int i, int j) HWY_ATTR { return hn::LoadU(d, from + offsets[i * Line::in + j]); },
          [=](int i, int j, SimdVec<T> v) HWY_ATTR { hn::StoreU(v, d, to + (i * Line::out + j) * point_step); });
    }
  }
}

/// From the domain of the transform to pixels: the output and the gradient of the weight. Returns whether all of them
/// are finite.
template <class Line, class T>
bool winograd_back(const WinogradTiles<T>& g) {
  const Simd<T> d;
  const int64_t* HWY_RESTRICT offsets = g.offsets;
  const int64_t point_step = g.point_step;
  auto zeros = hn::Zero(d);  // 0 times each result: NaN if one is not finite
  for (int64_t t = 0; t < g.tiles; ++t) {
    for (int64_t c = 0; c < g.channels; c += kLanes<T>) {
      const T* HWY_RESTRICT from = g.points + t * g.points_step + c;
      T* HWY_RESTRICT to = g.pixels + t * g.pixels_step + c;
      auto sum = hn::Zero(d);
      transform_square<Line, T>(
          [=](int i, int j) HWY_ATTR { return hn::LoadU(d, from + (i * Line::in + j) * point_step); },
          [&](int i, int j, SimdVec<T> v) HWY_ATTR {
            hn::StoreU(v, d, to + offsets[i * Line::out + j]);
            sum = hn::Add(sum, v);
          });
      zeros = hn::MulAdd(sum, hn::Zero(d), zeros);
    }
  }
  return hn::AllTrue(d, hn::Eq(zeros, hn::Zero(d)));
}

template <int taps, class T>
constexpr WinogradOps<T> winograd_transforms() {
  using Sizes = WinogradSizes<taps>;
  return {&winograd_forth<InputLine<Sizes::points>, T>, &winograd_forth<WeightLine<Sizes>, T>,
          &winograd_forth<GradientLine<Sizes>, T>, &winograd_back<OutputLine<Sizes>, T>,
          &winograd_back<WeightGradientLine<Sizes>, T>};
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
