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
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR { store(hn::Mul(load(out), scale), out); });
}

template <class T>
void log_softmax_row(const T* x, T* out, int64_t n) {
  const Simd<T> d;
  const T m = max_of_row(x, n);
  const auto top = hn::Set(d, m), log_sum = hn::Set(d, static_cast<T>(std::log(sum_exp_row<T>(x, m, nullptr, n))));
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    store(hn::Sub(hn::Sub(load(x), top), log_sum), out);
  });
}

template <class T>
void softmax_backward_row(const T* g, const T* y, T* dx, int64_t n) {
  const Simd<T> d;
  const double sum = wide_sum<T>(n, [&](const auto& load) HWY_ATTR { return hn::Mul(load(g), load(y)); });
  const auto s = hn::Set(d, static_cast<T>(sum));
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    store(hn::Mul(load(y), hn::Sub(load(g), s)), dx);
  });
}

template <class T>
void log_softmax_backward_row(const T* g, const T* y, T* dx, int64_t n) {
  const Simd<T> d;
  const auto s = hn::Set(d, static_cast<T>(wide_sum<T>(n, [&](const auto& load) HWY_ATTR { return load(g); })));
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    store(hn::NegMulAdd(exp_of_low(d, load(y)), s, load(g)), dx);
  });
}

// Along an axis that is not the last, lines of `width` neighbours are read one after the other; the state of each
// neighbour is in an array of kSoftmaxColumns, which whole vectors may be read from and written to.

template <class T>
struct Columns {
  HWY_ALIGN T at[kSoftmaxColumns];
  Columns(T value, int64_t width) {
    for (int64_t j = 0; j < width; j += kLanes<T>) put(j, hn::Set(Simd<T>(), value));
  }
  HWY_INLINE SimdVec<T> get(int64_t j) const { return hn::Load(Simd<T>(), at + j); }
  HWY_INLINE void put(int64_t j, SimdVec<T> v) { hn::Store(v, Simd<T>(), at + j); }
};

/// Calls f(offset of a line, first column of a vector) for all lines.
template <class T, class F>
HWY_INLINE void for_lines(int64_t n, int64_t step, int64_t width, F&& f) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; j += kLanes<T>) f(i * step, j);
}

template <class T>
Columns<T> max_of_columns(const T* x, int64_t n, int64_t step, int64_t width) {
  Columns<T> top(kLowest<T>, width);
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    top.put(j, hn::Max(load_row(x + line, j, width), top.get(j)));
  });
  return top;
}

template <class T>
void softmax_columns(const T* x, T* out, int64_t n, int64_t step, int64_t width) {
  const Simd<T> d;
  const Columns<T> top = max_of_columns(x, n, step, width);
  Columns<T> sum(T(0), width);
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    const auto e = exp_of_low(d, hn::Sub(load_row(x + line, j, width), top.get(j)));
    store_row(e, out + line, j, width);
    sum.put(j, hn::Add(sum.get(j), e));
  });
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    store_row(hn::Div(load_row(out + line, j, width), sum.get(j)), out + line, j, width);
  });
}

template <class T>
void log_softmax_columns(const T* x, T* out, int64_t n, int64_t step, int64_t width) {
  const Simd<T> d;
  const Columns<T> top = max_of_columns(x, n, step, width);
  Columns<T> sum(T(0), width);
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    sum.put(j, hn::Add(sum.get(j), exp_of_low(d, hn::Sub(load_row(x + line, j, width), top.get(j)))));
  });
  for (int64_t j = 0; j < width; j += kLanes<T>) sum.put(j, log_v(d, sum.get(j)));
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    store_row(hn::Sub(hn::Sub(load_row(x + line, j, width), top.get(j)), sum.get(j)), out + line, j, width);
  });
}

template <class T>
void softmax_backward_columns(const T* g, const T* y, T* dx, int64_t n, int64_t step, int64_t width) {
  Columns<T> sum(T(0), width);
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    sum.put(j, hn::MulAdd(load_row(g + line, j, width), load_row(y + line, j, width), sum.get(j)));
  });
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    store_row(hn::Mul(load_row(y + line, j, width), hn::Sub(load_row(g + line, j, width), sum.get(j))), dx + line, j,
              width);
  });
}

template <class T>
void log_softmax_backward_columns(const T* g, const T* y, T* dx, int64_t n, int64_t step, int64_t width) {
  const Simd<T> d;
  Columns<T> sum(T(0), width);
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    sum.put(j, hn::Add(sum.get(j), load_row(g + line, j, width)));
  });
  for_lines<T>(n, step, width, [&](int64_t line, int64_t j) HWY_ATTR {
    const auto p = exp_of_low(d, load_row(y + line, j, width));
    store_row(hn::NegMulAdd(p, sum.get(j), load_row(g + line, j, width)), dx + line, j, width);
  });
}

template <class T>
inline constexpr SoftmaxLines<T> kLines{softmax_row<T>,
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
