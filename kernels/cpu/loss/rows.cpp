// SIMD functions of cross-entropy and binary cross-entropy.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss/rows.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/loss/loss.h"
#include "kernels/cpu/softmax/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

/// Replaces sums of exponentials by their logs. The vectors' logarithm is accurate enough for rows of float.
template <class T>
void take_logs(double* sums, int64_t n) {
  if constexpr (sizeof(T) == 8) {
    for (int64_t i = 0; i < n; ++i) sums[i] = std::log(sums[i]);
  } else {
    for (int64_t i = 0; i < n; i += kLanes<double>) store_row(log_v(Simd<double>(), load_row(sums, i, n)), sums, i, n);
  }
}

/// Computes value = value + rest and the rounding error in `rest`, by Knuth's two-sum.
void exact_sums(double* value, double* rest, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes<double>) {
    const auto a = load_row(rest, i, n), b = load_row(value, i, n);
    const auto sum = hn::Add(a, b), of_b = hn::Sub(sum, a), of_a = hn::Sub(sum, of_b);
    store_row(sum, value, i, n);
    store_row(hn::Add(hn::Sub(a, of_a), hn::Sub(b, of_b)), rest, i, n);
  }
}

template <class T>
void log_sum_exp(const T* x, int64_t rows, int64_t n, double* value, double* rest) {
  for (int64_t i = 0; i < rows; ++i, x += n) {
    const T m = max_of_row(x, n);
    value[i] = sum_exp_row<T>(x, m, nullptr, n);
    rest[i] = static_cast<double>(m);
  }
  take_logs<T>(value, rows);
  exact_sums(value, rest, rows);
}

template <class T>
void scaled_softmax(const T* x, ExactSum lse, T scale, T* dx, int64_t n) {
  const Simd<T> d;
  const T head = static_cast<T>(lse.value);  // two steps keep lse's digits
  const auto high = hn::Set(d, head),
             low = hn::Set(d, static_cast<T>((lse.value - static_cast<double>(head)) + lse.rest));
  const auto factor = hn::Set(d, scale);
  for_vectors<T>(n, [&](const auto& load, const auto& store) HWY_ATTR {
    store(hn::Mul(factor, exp_of_low(d, hn::Sub(hn::Sub(load(x), high), low))), dx);
  });
}

template <class T>
HWY_INLINE SimdVec<T> load_or_set(const T* p, int64_t step, int64_t at, int64_t n) {
  return step ? load_row(p, at, n) : hn::Set(Simd<T>(), *p);
}

template <class T>
double bce(const T* x, const T* target, int64_t target_step, T* out, int64_t n) {
  const Simd<T> d;
  auto sum = hn::Zero(Simd<double>());
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const auto v = load_row(x, i, n), t = load_or_set(target, target_step, i, n);
    const auto soft = log1p_v(d, exp_of_low(d, hn::Neg(hn::Abs(v))));
    // Compute max(v, 0) - v t as one product: at an infinite v its two parts would cancel to NaN.
    const auto share = hn::IfThenElse(hn::Gt(v, hn::Zero(d)), hn::Sub(hn::Set(d, T(1)), t), t);
    auto loss = hn::MulAdd(hn::Abs(v), share, soft);
    if (out) store_row(loss, out, i, n);
    if (n - i < kLanes<T>) loss = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), loss);
    sum = add_wide(sum, loss);
  }
  return total(sum);
}

template <class T>
void bce_backward(const T* x, const T* target, int64_t target_step, const T* g, int64_t g_step, T scale, T* dx,
                  int64_t n) {
  const Simd<T> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const auto difference = hn::Sub(sigmoid_v(d, load_row(x, i, n)), load_or_set(target, target_step, i, n));
    store_row(hn::Mul(hn::Mul(factor, load_or_set(g, g_step, i, n)), difference), dx, i, n);
  }
}

/// Sums c (d - c / 2) with d clamped to c, or without bounds d^2 / 2, in two sums.
template <bool bounds, class T>
double huber_terms(const T* x, const T* target, T limit, int64_t n) {
  const Simd<T> d;
  const auto half = hn::Set(d, T(0.5)), high = hn::Set(d, limit), low = hn::Neg(high);
  const auto term = [&](SimdVec<T> a, SimdVec<T> b) HWY_ATTR {
    const auto difference = hn::Sub(a, b);
    if constexpr (!bounds) return hn::Mul(hn::Mul(difference, difference), half);
    const auto clamped = hn::Min(high, hn::Max(low, difference));
    return keep_nan(difference, hn::Mul(clamped, hn::NegMulAdd(clamped, half, difference)));
  };
  const auto whole = [&](int64_t i) HWY_ATTR { return term(hn::LoadU(d, x + i), hn::LoadU(d, target + i)); };
  auto sum = hn::Zero(Simd<double>()), other = sum;
  constexpr int64_t lanes = kLanes<T>;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sum = add_wide(sum, whole(i));
    other = add_wide(other, whole(i + lanes));
  }
  for (; i < n; i += lanes) sum = add_wide(sum, term(load_row(x, i, n), load_row(target, i, n)));
  return total(hn::Add(sum, other));
}

template <class T>
double huber(const T* x, const T* target, T limit, int64_t n) {
  return limit < std::numeric_limits<T>::infinity() ? huber_terms<true>(x, target, limit, n)
                                                    : huber_terms<false>(x, target, limit, n);
}

template <class T>
inline constexpr LossRows<T> kLossRows{log_sum_exp<T>, scaled_softmax<T>, bce<T>, bce_backward<T>, huber<T>};

const LossRows<float>* loss_rows_f32() { return &kLossRows<float>; }
const LossRows<double>* loss_rows_f64() { return &kLossRows<double>; }

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(loss_rows_f32);
HWY_EXPORT(loss_rows_f64);

const LossRows<float>& loss_rows(float) { return *HWY_DYNAMIC_DISPATCH(loss_rows_f32)(); }
const LossRows<double>& loss_rows(double) { return *HWY_DYNAMIC_DISPATCH(loss_rows_f64)(); }
}  // namespace levin::kernels::cpu
#endif
