// Products, sums and rotations of lines, and eliminations within blocks of them.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linalg/lines.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/linalg/lines.h"
#include "kernels/cpu/simd-inl.h"

#include <cmath>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

using linalg::Chain, linalg::PoleSum, linalg::Rotation;

/// Products of R rows and x, R independent sums in flight.
template <int R, class T>
HWY_INLINE void row_products(const T* a, int64_t stride, int64_t n, const T* x, T* y) {
  const Simd<T> d;
  SimdVec<T> sums[R];
  for (int r = 0; r < R; ++r) sums[r] = hn::Zero(d);
  int64_t j = 0;
  for (; j + kLanes<T> <= n; j += kLanes<T>) {
    const auto v = hn::LoadU(d, x + j);
    for (int r = 0; r < R; ++r) sums[r] = hn::MulAdd(hn::LoadU(d, a + r * stride + j), v, sums[r]);
  }
  if (j < n) {
    const auto v = load_part(x + j, n - j);
    for (int r = 0; r < R; ++r) sums[r] = hn::MulAdd(load_part(a + r * stride + j, n - j), v, sums[r]);
  }
  for (int r = 0; r < R; ++r) y[r] = hn::GetLane(hn::SumOfLanes(d, sums[r]));
}

template <class T>
HWY_INLINE void all_products(const T* a, int64_t stride, int64_t rows, int64_t n, const T* x, T* y) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) row_products<4>(a + i * stride, stride, n, x, y + i);
  for (; i < rows; ++i) row_products<1>(a + i * stride, stride, n, x, y + i);
}

template <class T>
HWY_INLINE void scaled_sum(int64_t n, T scale, const T* x, T* y) {
  const Simd<T> d;
  const auto s = hn::Set(d, scale);
  int64_t j = 0;
  for (; j + kLanes<T> <= n; j += kLanes<T>)
    hn::StoreU(hn::MulAdd(s, hn::LoadU(d, x + j), hn::LoadU(d, y + j)), d, y + j);
  if (j < n) store_part(hn::MulAdd(s, load_part(x + j, n - j), load_part(y + j, n - j)), y + j, n - j);
}

/// Subtracts factors[k * step] * x (n) from line k of `count` lines, in whole vectors.
template <class T>
HWY_INLINE void subtract_from_all(int64_t count, int64_t n, const T* x, const T* factors, int64_t step, T* lines,
                                  int64_t stride) {
  const Simd<T> d;
  for (int64_t k = 0; k < count; ++k) {
    const auto factor = hn::Set(d, factors[k * step]);
    T* line = lines + k * stride;
    for (int64_t j = 0; j < n; j += kLanes<T>)
      hn::StoreU(hn::NegMulAdd(factor, hn::LoadU(d, x + j), hn::LoadU(d, line + j)), d, line + j);
  }
}

template <class T>
HWY_INLINE void divide_all(int64_t n, T divisor, T* x) {
  const Simd<T> d;
  for (int64_t i = 0; i < n; i += kLanes<T>) hn::StoreU(hn::Div(hn::LoadU(d, x + i), hn::Set(d, divisor)), d, x + i);
}

template <class T>
HWY_INLINE bool factorize_positive_columns(int64_t height, int64_t width, T* lines, int64_t stride) {
  for (int64_t j = 0; j < width; ++j) {
    T* column = lines + j * stride;
    if (!(column[j] > T(0))) return false;
    divide_all(height - j, std::sqrt(column[j]), column + j);
    const T* below = column + j + 1;
    subtract_from_all(width - j - 1, height - j - 1, below, below, 1, column + stride + j + 1, stride);
  }
  return true;
}

/// Returns the index of the first element of the largest magnitude; a NaN counts only if it is the first element.
template <class T>
HWY_INLINE int64_t first_largest(int64_t n, const T* x) {
  const Simd<T> d;
  auto most = hn::Abs(hn::Set(d, x[0]));
  const auto line = [&](int64_t i) HWY_ATTR {
    return hn::Abs(i + kLanes<T> <= n ? hn::LoadU(d, x + i) : load_part(x + i, n - i));
  };
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const auto v = line(i);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  most = hn::MaxOfLanes(d, most);
  for (int64_t i = 0; i < n; i += kLanes<T>)
    if (const auto found = hn::FindFirstTrue(d, hn::Eq(line(i), most)); found >= 0) return i + found;
  return 0;
}

template <class T>
HWY_INLINE bool factorize_columns(int64_t height, int64_t width, T* lines, int64_t stride, int64_t* pivots) {
  bool regular = true;
  for (int64_t j = 0; j < width; ++j) {
    T* column = lines + j * stride;
    const int64_t pivot = pivots[j] = j + first_largest(height - j, column + j);
    const T value = column[pivot];
    regular &= value != T(0);
    if (value == T(0)) continue;
    for (int64_t k = 0; pivot != j && k < width; ++k) std::swap(lines[k * stride + j], lines[k * stride + pivot]);
    divide_all(height - j - 1, value, column + j + 1);
    subtract_from_all(width - j - 1, height - j - 1, column + j + 1, column + stride + j, stride,
                      column + stride + j + 1, stride);
  }
  return regular;
}

template <int V, class T>
HWY_INLINE void subtract_columns(int64_t count, const T* factors, int64_t step, const T* lines, int64_t stride, T* y) {
  const Simd<T> d;
  SimdVec<T> sums[V];
  for (int v = 0; v < V; ++v) sums[v] = hn::LoadU(d, y + v * kLanes<T>);
  for (int64_t k = 0; k < count; ++k) {
    const auto factor = hn::Set(d, factors[k * step]);
    for (int v = 0; v < V; ++v)
      sums[v] = hn::NegMulAdd(factor, hn::LoadU(d, lines + k * stride + v * kLanes<T>), sums[v]);
  }
  for (int v = 0; v < V; ++v) hn::StoreU(sums[v], d, y + v * kLanes<T>);
}

template <class T>
HWY_INLINE void subtract_all_lines(int64_t count, int64_t n, const T* factors, int64_t step, const T* lines,
                                   int64_t stride, T* y) {
  const Simd<T> d;
  int64_t j = 0;
  for (; j + 4 * kLanes<T> <= n; j += 4 * kLanes<T>)
    subtract_columns<4>(count, factors, step, lines + j, stride, y + j);
  for (; j + kLanes<T> <= n; j += kLanes<T>) subtract_columns<1>(count, factors, step, lines + j, stride, y + j);
  if (j == n) return;
  auto sum = load_part(y + j, n - j);
  for (int64_t k = 0; k < count; ++k)
    sum = hn::NegMulAdd(hn::Set(d, factors[k * step]), load_part(lines + k * stride + j, n - j), sum);
  store_part(sum, y + j, n - j);
}

/// Rotates V whole vectors of each line, or one partial vector of `part` elements. The line that two rotations share
/// stays in registers. Not inlined, because g++ 12 would fail with an internal compiler error under -fsanitize=thread.
template <int V, class T>
HWY_NOINLINE void rotate_columns(T* a, int64_t stride, int64_t part, const Chain& chain, const Rotation<T>* list) {
  const Simd<T> d;
  const auto load = [&](const T* p) HWY_ATTR { return part == 0 ? hn::LoadU(d, p) : load_part(p, part); };
  const auto store = [&](SimdVec<T> v, T* p) HWY_ATTR {
    if (part == 0) return hn::StoreU(v, d, p);
    store_part(v, p, part);
  };
  T* line = a + chain.first * stride;
  const int64_t step = chain.step * stride;
  SimdVec<T> carried[V];
  for (int v = 0; v < V; ++v) carried[v] = load(line + v * kLanes<T>);
  for (int64_t i = 0; i < chain.count; ++i, line += step) {
    const auto c = hn::Set(d, list[chain.begin + i].c), s = hn::Set(d, list[chain.begin + i].s);
    for (int v = 0; v < V; ++v) {
      const auto next = load(line + step + v * kLanes<T>);
      store(hn::MulAdd(c, carried[v], hn::Mul(s, next)), line + v * kLanes<T>);
      carried[v] = hn::NegMulAdd(s, carried[v], hn::Mul(c, next));
    }
  }
  for (int v = 0; v < V; ++v) store(carried[v], line + v * kLanes<T>);
}

template <class T>
HWY_INLINE void rotate_lines(T* a, int64_t stride, int64_t columns, const Chain* chains, int64_t count,
                             const Rotation<T>* list) {
  int64_t j = 0;
  for (; j + 4 * kLanes<T> <= columns; j += 4 * kLanes<T>)
    for (int64_t k = 0; k < count; ++k) rotate_columns<4>(a + j, stride, 0, chains[k], list);
  for (; j + kLanes<T> <= columns; j += kLanes<T>)
    for (int64_t k = 0; k < count; ++k) rotate_columns<1>(a + j, stride, 0, chains[k], list);
  for (int64_t k = 0; j < columns && k < count; ++k) rotate_columns<1>(a + j, stride, columns - j, chains[k], list);
}

/// Each of the four sums in flight takes every fourth vector.
HWY_INLINE PoleSum poles_sum(int64_t n, const double* weights, const double* gaps, double x) {
  const Simd<double> d;
  const auto shift = hn::Set(d, x);
  SimdVec<double> values[4], slopes[4];
  for (int r = 0; r < 4; ++r) values[r] = slopes[r] = hn::Zero(d);
  const auto add = [&](int r, SimdVec<double> weight, SimdVec<double> gap) HWY_ATTR {
    const auto inverse = hn::Div(hn::Set(d, 1.0), hn::Sub(gap, shift)), part = hn::Mul(weight, inverse);
    values[r] = hn::Add(values[r], part);
    slopes[r] = hn::MulAdd(part, inverse, slopes[r]);
  };
  constexpr int64_t kVector = kLanes<double>;
  int64_t j = 0;
  for (; j + 4 * kVector <= n; j += 4 * kVector)
    for (int r = 0; r < 4; ++r) add(r, hn::LoadU(d, weights + j + r * kVector), hn::LoadU(d, gaps + j + r * kVector));
  for (; j + kVector <= n; j += kVector) add(0, hn::LoadU(d, weights + j), hn::LoadU(d, gaps + j));
  if (j < n) add(0, load_part(weights + j, n - j), load_part(gaps + j, n - j));
  const auto sum = [&](const SimdVec<double>* v) HWY_ATTR {
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]))));
  };
  return {sum(values), sum(slopes)};
}

HWY_INLINE void multiply_ratios(int64_t n, const double* x, const double* poles, double pole, double* y) {
  const Simd<double> d;
  const auto p = hn::Set(d, pole);
  const auto ratio = [&](SimdVec<double> v, SimdVec<double> other, SimdVec<double> old)
                         HWY_ATTR { return hn::Mul(old, hn::Div(v, hn::Sub(other, p))); };
  int64_t j = 0;
  for (; j + kLanes<double> <= n; j += kLanes<double>)
    hn::StoreU(ratio(hn::LoadU(d, x + j), hn::LoadU(d, poles + j), hn::LoadU(d, y + j)), d, y + j);
  if (j < n)
    store_part(ratio(load_part(x + j, n - j), load_part(poles + j, n - j), load_part(y + j, n - j)), y + j, n - j);
}

}  // namespace

void products_f32(const float* a, int64_t stride, int64_t rows, int64_t n, const float* x, float* y) {
  all_products(a, stride, rows, n, x, y);
}
void products_f64(const double* a, int64_t stride, int64_t rows, int64_t n, const double* x, double* y) {
  all_products(a, stride, rows, n, x, y);
}
void add_scaled_f32(int64_t n, float scale, const float* x, float* y) { scaled_sum(n, scale, x, y); }
void add_scaled_f64(int64_t n, double scale, const double* x, double* y) { scaled_sum(n, scale, x, y); }
bool cholesky_f32(int64_t height, int64_t width, float* lines, int64_t stride) {
  return factorize_positive_columns(height, width, lines, stride);
}
bool cholesky_f64(int64_t height, int64_t width, double* lines, int64_t stride) {
  return factorize_positive_columns(height, width, lines, stride);
}
bool lu_f32(int64_t height, int64_t width, float* lines, int64_t stride, int64_t* pivots) {
  return factorize_columns(height, width, lines, stride, pivots);
}
bool lu_f64(int64_t height, int64_t width, double* lines, int64_t stride, int64_t* pivots) {
  return factorize_columns(height, width, lines, stride, pivots);
}
void subtract_lines_f32(int64_t count, int64_t n, const float* factors, int64_t step, const float* lines,
                        int64_t stride, float* y) {
  subtract_all_lines(count, n, factors, step, lines, stride, y);
}
void subtract_lines_f64(int64_t count, int64_t n, const double* factors, int64_t step, const double* lines,
                        int64_t stride, double* y) {
  subtract_all_lines(count, n, factors, step, lines, stride, y);
}
void rotate_f32(float* a, int64_t stride, int64_t columns, const Chain* chains, int64_t count,
                const Rotation<float>* list) {
  rotate_lines(a, stride, columns, chains, count, list);
}
void rotate_f64(double* a, int64_t stride, int64_t columns, const Chain* chains, int64_t count,
                const Rotation<double>* list) {
  rotate_lines(a, stride, columns, chains, count, list);
}
PoleSum pole_sum_f64(int64_t n, const double* weights, const double* gaps, double x) {
  return poles_sum(n, weights, gaps, x);
}
void ratios_f64(int64_t n, const double* x, const double* poles, double pole, double* y) {
  multiply_ratios(n, x, poles, pole, y);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {

HWY_EXPORT(products_f32);
HWY_EXPORT(products_f64);
HWY_EXPORT(add_scaled_f32);
HWY_EXPORT(add_scaled_f64);
HWY_EXPORT(cholesky_f32);
HWY_EXPORT(cholesky_f64);
HWY_EXPORT(lu_f32);
HWY_EXPORT(lu_f64);
HWY_EXPORT(subtract_lines_f32);
HWY_EXPORT(subtract_lines_f64);
HWY_EXPORT(rotate_f32);
HWY_EXPORT(rotate_f64);
HWY_EXPORT(pole_sum_f64);
HWY_EXPORT(ratios_f64);

namespace linalg {

void products(const float* a, int64_t stride, int64_t rows, int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(products_f32)(a, stride, rows, n, x, y);
}
void products(const double* a, int64_t stride, int64_t rows, int64_t n, const double* x, double* y) {
  HWY_DYNAMIC_DISPATCH(products_f64)(a, stride, rows, n, x, y);
}
void add_scaled(int64_t n, float scale, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(add_scaled_f32)(n, scale, x, y);
}
void add_scaled(int64_t n, double scale, const double* x, double* y) {
  HWY_DYNAMIC_DISPATCH(add_scaled_f64)(n, scale, x, y);
}
bool cholesky_of_columns(int64_t height, int64_t width, float* lines, int64_t stride) {
  return HWY_DYNAMIC_DISPATCH(cholesky_f32)(height, width, lines, stride);
}
bool cholesky_of_columns(int64_t height, int64_t width, double* lines, int64_t stride) {
  return HWY_DYNAMIC_DISPATCH(cholesky_f64)(height, width, lines, stride);
}
bool lu_of_columns(int64_t height, int64_t width, float* lines, int64_t stride, int64_t* pivots) {
  return HWY_DYNAMIC_DISPATCH(lu_f32)(height, width, lines, stride, pivots);
}
bool lu_of_columns(int64_t height, int64_t width, double* lines, int64_t stride, int64_t* pivots) {
  return HWY_DYNAMIC_DISPATCH(lu_f64)(height, width, lines, stride, pivots);
}
void subtract_lines(int64_t count, int64_t n, const float* factors, int64_t step, const float* lines, int64_t stride,
                    float* y) {
  HWY_DYNAMIC_DISPATCH(subtract_lines_f32)(count, n, factors, step, lines, stride, y);
}
void subtract_lines(int64_t count, int64_t n, const double* factors, int64_t step, const double* lines, int64_t stride,
                    double* y) {
  HWY_DYNAMIC_DISPATCH(subtract_lines_f64)(count, n, factors, step, lines, stride, y);
}
void rotate(float* a, int64_t stride, int64_t columns, const Chain* chains, int64_t count,
            const Rotation<float>* list) {
  HWY_DYNAMIC_DISPATCH(rotate_f32)(a, stride, columns, chains, count, list);
}
void rotate(double* a, int64_t stride, int64_t columns, const Chain* chains, int64_t count,
            const Rotation<double>* list) {
  HWY_DYNAMIC_DISPATCH(rotate_f64)(a, stride, columns, chains, count, list);
}
PoleSum sum_of_poles(int64_t n, const double* weights, const double* gaps, double x) {
  return HWY_DYNAMIC_DISPATCH(pole_sum_f64)(n, weights, gaps, x);
}
void multiply_by_ratios(int64_t n, const double* x, const double* poles, double pole, double* y) {
  HWY_DYNAMIC_DISPATCH(ratios_f64)(n, x, poles, pole, y);
}

}  // namespace linalg
}  // namespace levin::kernels::cpu
#endif
