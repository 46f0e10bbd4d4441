// Softmax, its logarithm and their gradients: three passes over a line that stays in the cache.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax/softmax.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/softmax/rows-inl.h"
#include "kernels/cpu/softmax/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class T>
void softmax_row(const T* x, T* out, int64_t n) {
  const Simd<T> d;
  const auto scale = hn::Set(d, static_cast<T>(1.0 / sum_exp_row(x, max_of_row(x, n), out, n)));
  for (int64_t i = 0; i < n; i += kLanes<T>) store_row(hn::Mul(load_row(out, i, n), scale), out, i, n);
}

template <class T>
void log_softmax_row(const T* x, T* out, int64_t n) {
  const Simd<T> d;
  const T m = max_of_row(x, n);
  const auto top = hn::Set(d, m), log_sum = hn::Set(d, static_cast<T>(std::log(sum_exp_row<T>(x, m, nullptr, n))));
  for (int64_t i = 0; i < n; i += kLanes<T>)
    store_row(hn::Sub(hn::Sub(load_row(x, i, n), top), log_sum), out, i, n);
}

template <class T>
void softmax_backward_row(const T* g, const T* y, T* dx, int64_t n) {
  const Simd<T> d;
  auto sum = hn::Zero(Simd<double>());
  for (int64_t i = 0; i < n; i += kLanes<T>) sum = add_wide(sum, hn::Mul(load_row(g, i, n), load_row(y, i, n)));
  const auto s = hn::Set(d, static_cast<T>(total(sum)));
  for (int64_t i = 0; i < n; i += kLanes<T>)
    store_row(hn::Mul(load_row(y, i, n), hn::Sub(load_row(g, i, n), s)), dx, i, n);
}

template <class T>
void log_softmax_backward_row(const T* g, const T* y, T* dx, int64_t n) {
  const Simd<T> d;
  auto sum = hn::Zero(Simd<double>());
  for (int64_t i = 0; i < n; i += kLanes<T>) sum = add_wide(sum, load_row(g, i, n));
  const auto s = hn::Set(d, static_cast<T>(total(sum)));
  for (int64_t i = 0; i < n; i += kLanes<T>)
    store_row(hn::NegMulAdd(exp_v(d, load_row(y, i, n)), s, load_row(g, i, n)), dx, i, n);
}

// Along an axis that is not the last, a vector holds neighbours of the inner axis; `width` of them are there.

template <class T>
HWY_INLINE SimdVec<T> max_of_columns(const T* x, int64_t n, int64_t step, int64_t width) {
  auto m = load_row(x, 0, width);
  for (int64_t i = 1; i < n; ++i) m = hn::Max(load_row(x + i * step, 0, width), m);
  return m;
}

template <class T>
void softmax_columns(const T* x, T* out, int64_t n, int64_t step, int64_t width) {
  const Simd<T> d;
  const auto top = max_of_columns(x, n, step, width);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < n; ++i) {
    const auto e = exp_v(d, hn::Sub(load_row(x + i * step, 0, width), top));
    store_row(e, out + i * step, 0, width);
    sum = hn::Add(sum, e);
  }
  for (int64_t i = 0; i < n; ++i) store_row(hn::Div(load_row(out + i * step, 0, width), sum), out + i * step, 0, width);
}

template <class T>
void log_softmax_columns(const T* x, T* out, int64_t n, int64_t step, int64_t width) {
  const Simd<T> d;
  const auto top = max_of_columns(x, n, step, width);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < n; ++i) sum = hn::Add(sum, exp_v(d, hn::Sub(load_row(x + i * step, 0, width), top)));
  const auto log_sum = log_v(d, sum);
  for (int64_t i = 0; i < n; ++i)
    store_row(hn::Sub(hn::Sub(load_row(x + i * step, 0, width), top), log_sum), out + i * step, 0, width);
}

template <class T>
void softmax_backward_columns(const T* g, const T* y, T* dx, int64_t n, int64_t step, int64_t width) {
  auto sum = hn::Zero(Simd<T>());
  for (int64_t i = 0; i < n; ++i)
    sum = hn::MulAdd(load_row(g + i * step, 0, width), load_row(y + i * step, 0, width), sum);
  for (int64_t i = 0; i < n; ++i)
    store_row(hn::Mul(load_row(y + i * step, 0, width), hn::Sub(load_row(g + i * step, 0, width), sum)), dx + i * step, 0,
              width);
}

template <class T>
void log_softmax_backward_columns(const T* g, const T* y, T* dx, int64_t n, int64_t step, int64_t width) {
  const Simd<T> d;
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < n; ++i) sum = hn::Add(sum, load_row(g + i * step, 0, width));
  for (int64_t i = 0; i < n; ++i) {
    const auto p = exp_v(d, load_row(y + i * step, 0, width));
    store_row(hn::NegMulAdd(p, sum, load_row(g + i * step, 0, width)), dx + i * step, 0, width);
  }
}

template <class T>
inline constexpr SoftmaxLines<T> kLines{kLanes<T>,
                                        softmax_row<T>,
                                        log_softmax_row<T>,
                                        softmax_columns<T>,
                                        log_softmax_columns<T>,
                                        softmax_backward_row<T>,
                                        log_softmax_backward_row<T>,
                                        softmax_backward_columns<T>,
                                        log_softmax_backward_columns<T>};

const SoftmaxLines<float>* lines_f32() { return &kLines<float>; }
const SoftmaxLines<double>* lines_f64() { return &kLines<double>; }

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(lines_f32);
HWY_EXPORT(lines_f64);

const SoftmaxLines<float>& softmax_lines(float) { return *HWY_DYNAMIC_DISPATCH(lines_f32)(); }
const SoftmaxLines<double>& softmax_lines(double) { return *HWY_DYNAMIC_DISPATCH(lines_f64)(); }
}  // namespace levin::kernels::cpu
#endif
