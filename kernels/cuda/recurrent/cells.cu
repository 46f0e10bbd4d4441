// The cells of recurrent layers and their gradients: a thread computes all gates of one value. Bound by bandwidth.
#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/elementwise/math.cuh"
#include "kernels/cuda/reduce/dispatch.h"

#include <levin/kernels/recurrent.h>

namespace levin::kernels::cuda {

/// Number n of values of a sample, and which samples have ended (lengths may be null).
struct CellShape {
  std::int64_t batch, n, step;
  const std::int64_t* lengths;
  __device__ bool has_ended(std::int64_t sample) const { return lengths && lengths[sample] <= step; }
};

/// The tensors of a step; gates, c and c_next may be null.
template <class T>
struct CellTensors {
  T *h_next, *c_next, *gates;
  const T *x, *s, *h, *c;
};

template <class T>
struct CellGradients {
  T *dx, *ds, *dh, *dc;
  const T *g, *gates, *h_next, *c_next, *h, *c;
};

/// Reads and writes the gates of one value in the compute type.
template <class T>
struct Gates {
  using C = ComputeType<T>;
  std::int64_t sample, place, n;
  __device__ std::int64_t at(int gates, int gate) const { return (sample * gates + gate) * n + place; }
  __device__ C load(const T* p, int gates = 1, int gate = 0) const { return convert<C>(p[at(gates, gate)]); }
  __device__ void store(T* p, C value, int gates = 1, int gate = 0) const { p[at(gates, gate)] = convert<T>(value); }
  __device__ void store4(T* p, C a, C b, C c, C d) const {
    if (!p) return;
    store(p, a, 4, 0);
    store(p, b, 4, 1);
    store(p, c, 4, 2);
    store(p, d, 4, 3);
  }
};

template <class C>
__device__ inline C sigmoid_slope(C y) {
  return y * (C(1) - y);
}
template <class C>
__device__ inline C tanh_slope(C y) {
  return C(1) - y * y;
}

struct RnnTanh {
  template <class T>
  __device__ static void forward(const CellTensors<T>& t, const Gates<T>& p) {
    p.store(t.h_next, math::tanh(p.load(t.x) + p.load(t.s)));
  }
  template <class T, class C>
  __device__ static void backward(const CellGradients<T>& t, const Gates<T>& p, C g) {
    p.store(t.dx, g * tanh_slope(p.load(t.h_next)));
    p.store(t.dh, C(0));
  }
};

struct RnnRelu {
  template <class T>
  __device__ static void forward(const CellTensors<T>& t, const Gates<T>& p) {
    using C = typename Gates<T>::C;
    const C a = p.load(t.x) + p.load(t.s);
    p.store(t.h_next, a < C(0) ? C(0) : a);  // keeps NaN
  }
  template <class T, class C>
  __device__ static void backward(const CellGradients<T>& t, const Gates<T>& p, C g) {
    p.store(t.dx, p.load(t.h_next) > C(0) ? g : C(0));
    p.store(t.dh, C(0));
  }
};

struct Gru {
  template <class T>
  __device__ static void forward(const CellTensors<T>& t, const Gates<T>& p) {
    const auto reset = math::sigmoid(p.load(t.x, 3, 0) + p.load(t.s, 3, 0));
    const auto update = math::sigmoid(p.load(t.x, 3, 1) + p.load(t.s, 3, 1));
    const auto state = p.load(t.s, 3, 2), fresh = math::tanh(p.load(t.x, 3, 2) + reset * state);
    p.store(t.h_next, fresh + update * (p.load(t.h) - fresh));
    p.store4(t.gates, reset, update, fresh, state);
  }
  template <class T, class C>
  __device__ static void backward(const CellGradients<T>& t, const Gates<T>& p, C g) {
    const C reset = p.load(t.gates, 4, 0), update = p.load(t.gates, 4, 1), fresh = p.load(t.gates, 4, 2);
    const C d_fresh = g * (C(1) - update) * tanh_slope(fresh);
    const C d_update = g * (p.load(t.h) - fresh) * sigmoid_slope(update);
    const C d_reset = d_fresh * p.load(t.gates, 4, 3) * sigmoid_slope(reset);
    p.store(t.dh, g * update);
    p.store(t.dx, d_reset, 3, 0);
    p.store(t.dx, d_update, 3, 1);
    p.store(t.dx, d_fresh, 3, 2);
    p.store(t.ds, d_reset, 3, 0);
    p.store(t.ds, d_update, 3, 1);
    p.store(t.ds, d_fresh * reset, 3, 2);
  }
};

struct Lstm {
  template <class T>
  __device__ static void forward(const CellTensors<T>& t, const Gates<T>& p) {
    const auto sum = [&](int gate) { return p.load(t.x, 4, gate) + p.load(t.s, 4, gate); };
    const auto in = math::sigmoid(sum(0)), forget = math::sigmoid(sum(1)), cell = math::tanh(sum(2)),
               out = math::sigmoid(sum(3));
    const auto c = forget * p.load(t.c) + in * cell;
    p.store(t.c_next, c);
    p.store(t.h_next, out * math::tanh(c));
    p.store4(t.gates, in, forget, cell, out);
  }
  template <class T, class C>
  __device__ static void backward(const CellGradients<T>& t, const Gates<T>& p, C g) {
    const C in = p.load(t.gates, 4, 0), forget = p.load(t.gates, 4, 1), cell = p.load(t.gates, 4, 2),
            out = p.load(t.gates, 4, 3), bounded = math::tanh(p.load(t.c_next));
    const C dc = p.load(t.dc) + g * out * tanh_slope(bounded);
    p.store4(t.dx, dc * cell * sigmoid_slope(in), dc * p.load(t.c) * sigmoid_slope(forget), dc * in * tanh_slope(cell),
             g * bounded * sigmoid_slope(out));
    p.store(t.dc, dc * forget);
    p.store(t.dh, C(0));
  }
};

template <class T, class Cell>
__global__ void cell_forward(CellTensors<T> t, CellShape shape) {
  for (std::int64_t i = global_thread(); i < shape.batch * shape.n; i += grid_threads()) {
    const Gates<T> place{i / shape.n, i % shape.n, shape.n};
    if (!shape.has_ended(place.sample)) {
      Cell::forward(t, place);
    } else {
      t.h_next[i] = t.h[i];
      if (t.c) t.c_next[i] = t.c[i];
    }
  }
}

template <class T, class Cell, int gates>
__global__ void cell_backward(CellGradients<T> t, CellShape shape) {
  using C = ComputeType<T>;
  for (std::int64_t i = global_thread(); i < shape.batch * shape.n; i += grid_threads()) {
    const Gates<T> place{i / shape.n, i % shape.n, shape.n};
    const C g = convert<C>(t.g[i]) + convert<C>(t.dh[i]);
    if (!shape.has_ended(place.sample)) {
      Cell::backward(t, place, g);
      continue;
    }
    t.dh[i] = convert<T>(g);
    for (int gate = 0; gate < gates; ++gate) {
      place.store(t.dx, C(0), gates, gate);
      if (t.ds) place.store(t.ds, C(0), gates, gate);
    }
  }
}

namespace {

CellShape shape_of(const TensorView& h, const TensorView& lengths, std::int64_t step) {
  return {h.size(0), h.size(1), step, elements<const std::int64_t>(lengths)};
}

template <class Cell>
void forward(const RecurrentCellArgs& a, const char* op, Stream& stream) {
  const CellShape shape = shape_of(a.h, a.lengths, a.step);
  if (shape.batch * shape.n == 0) return;
  dispatch_floats(a.x.dtype, op, [&]<class T>() {
    const CellTensors<T> tensors{elements<T>(a.h_next),  elements<T>(a.c_next),  elements<T>(a.gates),
                                 elements<const T>(a.x), elements<const T>(a.s), elements<const T>(a.h),
                                 elements<const T>(a.c)};
    launch(cell_forward<T, Cell>, {.grid = blocks_for(shape.batch * shape.n), .block = 256, .stream = stream}, tensors,
           shape);
  });
}

template <class Cell, int gates>
void backward(const RecurrentCellBackwardArgs& a, const char* op, Stream& stream) {
  const CellShape shape = shape_of(a.dh, a.lengths, a.step);
  if (shape.batch * shape.n == 0) return;
  dispatch_floats(a.dx.dtype, op, [&]<class T>() {
    const CellGradients<T> tensors{
        elements<T>(a.dx),      elements<T>(a.ds),          elements<T>(a.dh),           elements<T>(a.dc),
        elements<const T>(a.g), elements<const T>(a.gates), elements<const T>(a.h_next), elements<const T>(a.c_next),
        elements<const T>(a.h), elements<const T>(a.c)};
    launch(cell_backward<T, Cell, gates>, {.grid = blocks_for(shape.batch * shape.n), .block = 256, .stream = stream},
           tensors, shape);
  });
}

}  // namespace

void rnn_tanh_cell(const RecurrentCellArgs& a, Stream& stream) { forward<RnnTanh>(a, "rnn_tanh_cell", stream); }
void rnn_relu_cell(const RecurrentCellArgs& a, Stream& stream) { forward<RnnRelu>(a, "rnn_relu_cell", stream); }
void gru_cell(const RecurrentCellArgs& a, Stream& stream) { forward<Gru>(a, "gru_cell", stream); }
void lstm_cell(const RecurrentCellArgs& a, Stream& stream) { forward<Lstm>(a, "lstm_cell", stream); }
void rnn_tanh_cell_backward(const RecurrentCellBackwardArgs& a, Stream& stream) {
  backward<RnnTanh, 1>(a, "rnn_tanh_cell_backward", stream);
}
void rnn_relu_cell_backward(const RecurrentCellBackwardArgs& a, Stream& stream) {
  backward<RnnRelu, 1>(a, "rnn_relu_cell_backward", stream);
}
void gru_cell_backward(const RecurrentCellBackwardArgs& a, Stream& stream) {
  backward<Gru, 3>(a, "gru_cell_backward", stream);
}
void lstm_cell_backward(const RecurrentCellBackwardArgs& a, Stream& stream) {
  backward<Lstm, 4>(a, "lstm_cell_backward", stream);
}

}  // namespace levin::kernels::cuda
