// The cells of recurrent layers and their gradients: all gates of a vector of values in one pass.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent/cells.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/recurrent/cells.h"
#include "kernels/cpu/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE SimdVec<T> one() {
  return hn::Set(Simd<T>(), T(1));
}

/// Returns y (1 - y), the slope of sigmoid.
template <class T>
HWY_INLINE SimdVec<T> sigmoid_slope(SimdVec<T> y) {
  return hn::NegMulAdd(y, y, y);
}
/// Returns g (1 - y^2), where 1 - y^2 is the slope of tanh.
template <class T>
HWY_INLINE SimdVec<T> through_tanh(SimdVec<T> g, SimdVec<T> y) {
  return hn::Mul(g, hn::NegMulAdd(y, y, one<T>()));
}

template <class T>
void rnn_tanh(const CellRow<T>& r) {
  for (int64_t j = 0; j < r.n; j += kLanes<T>)
    store_row(tanh_v(Simd<T>(), hn::Add(load_row(r.x, j, r.n), load_row(r.s, j, r.n))), r.h_next, j, r.n);
}

template <class T>
void rnn_relu(const CellRow<T>& r) {
  for (int64_t j = 0; j < r.n; j += kLanes<T>) {
    const auto a = hn::Add(load_row(r.x, j, r.n), load_row(r.s, j, r.n));
    store_row(hn::IfThenZeroElse(hn::Lt(a, hn::Zero(Simd<T>())), a), r.h_next, j, r.n);  // keeps NaN
  }
}

template <class T>
void gru(const CellRow<T>& row) {
  const Simd<T> d;
  const int64_t n = row.n;
  for (int64_t j = 0; j < n; j += kLanes<T>) {
    const auto sum = [&](int gate) HWY_ATTR {
      return hn::Add(load_row(row.x + gate * n, j, n), load_row(row.s + gate * n, j, n));
    };
    const auto reset = sigmoid_v(d, sum(0)), update = sigmoid_v(d, sum(1)), state = load_row(row.s + 2 * n, j, n);
    const auto fresh = tanh_v(d, hn::MulAdd(reset, state, load_row(row.x + 2 * n, j, n)));
    store_row(hn::MulAdd(update, hn::Sub(load_row(row.h, j, n), fresh), fresh), row.h_next, j, n);
    if (!row.gates) continue;
    store_row(reset, row.gates, j, n);
    store_row(update, row.gates + n, j, n);
    store_row(fresh, row.gates + 2 * n, j, n);
    store_row(state, row.gates + 3 * n, j, n);
  }
}

template <class T>
void lstm(const CellRow<T>& r) {
  const Simd<T> d;
  const int64_t n = r.n;
  for (int64_t j = 0; j < n; j += kLanes<T>) {
    const auto sum = [&](int gate) HWY_ATTR {
      return hn::Add(load_row(r.x + gate * n, j, n), load_row(r.s + gate * n, j, n));
    };
    const auto in = sigmoid_v(d, sum(0)), forget = sigmoid_v(d, sum(1)), cell = tanh_v(d, sum(2)),
               out = sigmoid_v(d, sum(3));
    const auto c = hn::MulAdd(forget, load_row(r.c, j, n), hn::Mul(in, cell));
    store_row(c, r.c_next, j, n);
    store_row(hn::Mul(out, tanh_v(d, c)), r.h_next, j, n);
    if (!r.gates) continue;
    store_row(in, r.gates, j, n);
    store_row(forget, r.gates + n, j, n);
    store_row(cell, r.gates + 2 * n, j, n);
    store_row(out, r.gates + 3 * n, j, n);
  }
}

/// Returns the gradient of h' and puts 0 in dh.
template <class T>
HWY_INLINE SimdVec<T> take_gradient(const CellBackwardRow<T>& r, int64_t j) {
  const auto g = hn::Add(load_row(r.g, j, r.n), load_row(r.dh, j, r.n));
  store_row(hn::Zero(Simd<T>()), r.dh, j, r.n);
  return g;
}

template <class T>
void rnn_tanh_backward(const CellBackwardRow<T>& r) {
  for (int64_t j = 0; j < r.n; j += kLanes<T>)
    store_row(through_tanh<T>(take_gradient(r, j), load_row(r.h_next, j, r.n)), r.dx, j, r.n);
}

template <class T>
void rnn_relu_backward(const CellBackwardRow<T>& r) {
  for (int64_t j = 0; j < r.n; j += kLanes<T>) {
    const auto open = hn::Gt(load_row(r.h_next, j, r.n), hn::Zero(Simd<T>()));
    store_row(hn::IfThenElseZero(open, take_gradient(r, j)), r.dx, j, r.n);
  }
}

template <class T>
void gru_backward(const CellBackwardRow<T>& row) {
  const int64_t n = row.n;
  for (int64_t j = 0; j < n; j += kLanes<T>) {
    const auto gate = [&](int i) HWY_ATTR { return load_row(row.gates + i * n, j, n); };
    const auto reset = gate(0), update = gate(1), fresh = gate(2), state = gate(3);
    const auto g = hn::Add(load_row(row.g, j, n), load_row(row.dh, j, n));
    const auto d_fresh = through_tanh<T>(hn::NegMulAdd(g, update, g), fresh);
    const auto d_update = hn::Mul(hn::Mul(g, hn::Sub(load_row(row.h, j, n), fresh)), sigmoid_slope<T>(update));
    const auto d_reset = hn::Mul(hn::Mul(d_fresh, state), sigmoid_slope<T>(reset));
    store_row(hn::Mul(g, update), row.dh, j, n);
    for (T* const out : {row.dx, row.ds}) {
      store_row(d_reset, out, j, n);
      store_row(d_update, out + n, j, n);
    }
    store_row(d_fresh, row.dx + 2 * n, j, n);
    store_row(hn::Mul(d_fresh, reset), row.ds + 2 * n, j, n);
  }
}

template <class T>
void lstm_backward(const CellBackwardRow<T>& r) {
  const int64_t n = r.n;
  for (int64_t j = 0; j < n; j += kLanes<T>) {
    const auto gate = [&](int i) HWY_ATTR { return load_row(r.gates + i * n, j, n); };
    const auto in = gate(0), forget = gate(1), cell = gate(2), out = gate(3);
    const auto g = take_gradient(r, j), bounded = tanh_v(Simd<T>(), load_row(r.c_next, j, n));
    const auto dc = hn::Add(load_row(r.dc, j, n), through_tanh<T>(hn::Mul(g, out), bounded));
    store_row(hn::Mul(hn::Mul(dc, cell), sigmoid_slope<T>(in)), r.dx, j, n);
    store_row(hn::Mul(hn::Mul(dc, load_row(r.c, j, n)), sigmoid_slope<T>(forget)), r.dx + n, j, n);
    store_row(through_tanh<T>(hn::Mul(dc, in), cell), r.dx + 2 * n, j, n);
    store_row(hn::Mul(hn::Mul(g, bounded), sigmoid_slope<T>(out)), r.dx + 3 * n, j, n);
    store_row(hn::Mul(dc, forget), r.dc, j, n);
  }
}

template <class T>
inline constexpr CellRows<T> kCells{{rnn_tanh<T>, rnn_relu<T>, gru<T>, lstm<T>},
                                    {rnn_tanh_backward<T>, rnn_relu_backward<T>, gru_backward<T>, lstm_backward<T>}};

const CellRows<float>* cells_f32() { return &kCells<float>; }
const CellRows<double>* cells_f64() { return &kCells<double>; }

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(cells_f32);
HWY_EXPORT(cells_f64);

const CellRows<float>& cell_rows(float) { return *HWY_DYNAMIC_DISPATCH(cells_f32)(); }
const CellRows<double>& cell_rows(double) { return *HWY_DYNAMIC_DISPATCH(cells_f64)(); }
}  // namespace levin::kernels::cpu
#endif
