// Recurrent layers: one operation for all steps. Forward computes a product and a fused cell per step; backward
// computes the gradient of the weights in one product over all steps. The composed form, which differentiates by public
// operations, gives the second derivatives.

#include <levin/autograd/ops/recurrent.h>

#include "../errors.h"
#include "autocast.h"
#include "composed/gradients.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/matmul.h>
#include <levin/kernels/recurrent.h>

namespace levin {

using namespace ops;

namespace {

using Tensors = std::vector<Tensor>;

constexpr const char* kName = "recurrent_steps";

struct CellKernels {
  const kernels::Kernel<void(const kernels::RecurrentCellArgs&, Stream&)>& forward;
  const kernels::Kernel<void(const kernels::RecurrentCellBackwardArgs&, Stream&)>& backward;
  int64_t gates;
};

const CellKernels& kernels_of(RecurrentCell cell) {
  static const CellKernels table[] = {{kernels::rnn_tanh_cell, kernels::rnn_tanh_cell_backward, 1},
                                      {kernels::rnn_relu_cell, kernels::rnn_relu_cell_backward, 1},
                                      {kernels::gru_cell, kernels::gru_cell_backward, 3},
                                      {kernels::lstm_cell, kernels::lstm_cell_backward, 4}};
  return table[static_cast<int>(cell)];
}

bool keeps_gates(RecurrentCell cell) { return cell == RecurrentCell::gru || cell == RecurrentCell::lstm; }

struct Plan {
  RecurrentCell cell;
  bool reverse;
  int64_t steps, batch, hidden, gates;  // gates * hidden values of a step

  /// Returns the step that is computed i-th. The state before it is in row before(t) of the states, the one after it in
  /// row after(t).
  int64_t step(int64_t i) const { return reverse ? steps - 1 - i : i; }
  int64_t before(int64_t t) const { return reverse ? t + 1 : t; }
  int64_t after(int64_t t) const { return reverse ? t : t + 1; }
};

void check(const Plan& p, const Tensor& x, const RecurrentInputs& in, const RecurrentSteps& steps) {
  const Shape state{p.batch, p.hidden};
  const auto expect = [&](const char* name, const Tensor& t, const Shape& sizes) {
    if (t.sizes() != sizes)
      fail<ShapeError>("[{}] {} is {}, but from_input of {} needs {}.", kName, name, t.sizes(), x.sizes(), sizes);
  };
  expect("h", in.h, state);
  if (p.cell == RecurrentCell::lstm) expect("c", in.c, state);
  expect("weight_hh", in.weight_hh, {p.gates, p.hidden});
  if (in.bias_hh.defined()) expect("bias_hh", in.bias_hh, {p.gates});
  if (steps.lengths.defined()) expect("lengths", steps.lengths, {p.batch});
  check_floating(kName, x, "from_input");
  check_same_dtype(kName, {{"from_input", x}, {"h", in.h}, {"c", in.c}, {"weight_hh", in.weight_hh},
                           {"bias_hh", in.bias_hh}});
}

Plan plan_of(RecurrentCell cell, const Tensor& x, bool reverse) {
  const int64_t gates = kernels_of(cell).gates;
  if (x.dim() != 3 || x.size(0) == 0 || x.size(2) % gates != 0)
    fail<ShapeError>("[{}] from_input is {}, but (T, B, {} * H) with a step at least is needed.", kName, x.sizes(),
                     gates);
  return {cell, reverse, x.size(0), x.size(1), x.size(2) / gates, x.size(2)};
}

/// Returns item i of the first axis; of an absent tensor an absent one.
TensorView item(const Tensor& x, int64_t i) {
  if (!x.defined()) return {};
  TensorView v = x.tensor_view();
  v.pointer = static_cast<std::byte*>(v.pointer) + i * v.strides[0] * static_cast<int64_t>(size_of(v.dtype));
  v.sizes = Shape(v.sizes.begin() + 1, v.sizes.end());
  v.strides = Shape(v.strides.begin() + 1, v.strides.end());
  return v;
}

/// The states of all steps, (T + 1, B, H), and the gates (T, B, 4 H), which only backward needs.
struct States {
  Tensor h, c, gates;
};

States make_states(const Plan& p, const RecurrentInputs& in, bool recorded) {
  const TensorOptions type = like(in.h);
  States s{empty({p.steps + 1, p.batch, p.hidden}, type), {}, {}};
  const int64_t first = p.before(p.step(0));
  select(s.h, 0, first).copy_(in.h);
  if (p.cell == RecurrentCell::lstm) {
    s.c = empty({recorded ? p.steps + 1 : 1, p.batch, p.hidden}, type);
    select(s.c, 0, recorded ? first : 0).copy_(in.c);
  }
  if (recorded && keeps_gates(p.cell)) s.gates = empty({p.steps, p.batch, 4 * p.hidden}, type);
  return s;
}

/// Returns how many elements to leave between rows that products on the CPU read in place. Rows a multiple of 1 KiB
/// apart would share few sets of the caches, and be packed in each product or read from a slower cache.
int64_t gap_of_rows(const Tensor& like, int64_t columns) {
  const int64_t row_bytes = columns * static_cast<int64_t>(size_of(like.dtype()));
  return like.device() == kCpu && row_bytes % 1024 == 0 ? 16 : 0;
}

/// A matrix by which the product of each step multiplies: prepared by the first of them where this saves time, else a
/// copy with contiguous rows that they read in place.
class StepMatrix {
 public:
  StepMatrix(const Tensor& matrix, int64_t rows) : matrix_(matrix) {
    if (const int64_t bytes = kernels::prepared_matrix_bytes(matrix.tensor_view(), rows); bytes > 0) {
      prepared_ = empty({bytes}, {.dtype = kUInt8});
      return;
    }
    const int64_t columns = matrix.size(1), gap = gap_of_rows(matrix, columns);
    if (gap == 0) {
      matrix_ = contiguous(matrix);
      return;
    }
    matrix_ = narrow(empty({matrix.size(0), columns + gap}, like(matrix)), 1, 0, columns);
    matrix_.copy_(matrix);
  }

  /// Computes out = x matrix + beta out + bias.
  void multiply(const TensorView& out, const TensorView& x, const TensorView& bias, double beta, Stream& stream) {
    void* const prepared = prepared_.defined() ? prepared_.data<std::uint8_t>() : nullptr;
    kernels::matmul({out, x, matrix_.tensor_view(), bias, 1.0, beta, prepared, first_}, stream);
    first_ = false;
  }

 private:
  Tensor matrix_, prepared_;
  bool first_ = true;
};

States run_forward(const Plan& p, const Tensor& x, const RecurrentInputs& in, const Tensor& lengths, bool recorded) {
  const States s = make_states(p, in, recorded);
  const Tensor from_state = empty({p.batch, p.gates}, like(x));
  StepMatrix weight(transpose(in.weight_hh, 0, 1), p.batch);  // (H, gates)
  Stream stream = current_stream(x.device());
  for (int64_t i = 0; i < p.steps; ++i) {
    const int64_t t = p.step(i), before = p.before(t), after = p.after(t);
    weight.multiply(from_state.tensor_view(), item(s.h, before), view_of(in.bias_hh), 0.0, stream);
    kernels_of(p.cell).forward({item(s.h, after), item(s.c, recorded ? after : 0), item(s.gates, t), item(x, t),
                                from_state.tensor_view(), item(s.h, before), item(s.c, recorded ? before : 0),
                                view_of(lengths), t},
                               stream);
  }
  return s;
}

/// Computes the next states {h} or {h, c} with public operations.
Tensors composed_cell(RecurrentCell cell, const Tensor& x, const Tensor& s, const Tensors& states) {
  if (cell == RecurrentCell::rnn_tanh) return {tanh(add(x, s))};
  if (cell == RecurrentCell::rnn_relu) return {relu(add(x, s))};
  if (cell == RecurrentCell::gru) {
    const Tensors xs = chunk(x, 3, -1), ss = chunk(s, 3, -1);
    const Tensor reset = sigmoid(add(xs[0], ss[0])), update = sigmoid(add(xs[1], ss[1]));
    const Tensor fresh = tanh(addcmul(xs[2], reset, ss[2]));
    return {addcmul(fresh, update, sub(states[0], fresh))};
  }
  const Tensors gates = chunk(add(x, s), 4, -1);
  const Tensor c = addcmul(mul(sigmoid(gates[1]), states[1]), sigmoid(gates[0]), tanh(gates[2]));
  return {mul(sigmoid(gates[3]), tanh(c)), c};
}

/// Returns the states after each step, and the last c.
std::pair<Tensor, Tensor> composed(const Plan& p, const Tensor& from_input, const RecurrentInputs& in,
                                   const Tensor& lengths) {
  const Tensors xs = unbind(from_input);
  Tensors outputs(xs.size()), states{in.h};
  if (p.cell == RecurrentCell::lstm) states.push_back(in.c);
  for (int64_t i = 0; i < p.steps; ++i) {
    const auto t = static_cast<std::size_t>(p.step(i));
    Tensors next = composed_cell(p.cell, xs[t], linear(states[0], in.weight_hh, in.bias_hh), states);
    if (lengths.defined()) {
      const Tensor takes_part = unsqueeze(gt(lengths, static_cast<int64_t>(t)), 1);
      for (std::size_t s = 0; s < next.size(); ++s) next[s] = where(takes_part, next[s], states[s]);
    }
    states = std::move(next);
    outputs[t] = states[0];
  }
  return {stack(outputs), states.size() > 1 ? states[1] : Tensor()};
}

/// Returns an uninitialized tensor (T, B, gates) for the gradients of the gates, which the products that compute the
/// weights' gradients read in place.
Tensor gradients_of_gates(const Plan& p, const Tensor& weight) {
  const int64_t gap = gap_of_rows(weight, p.gates);
  return narrow(empty({p.steps, p.batch, p.gates + gap}, like(weight)), 2, 0, p.gates);
}

Grads fused_gradients(Context& k, std::span<const Tensor> upstream) {
  const Plan& p = k.get<Plan>();
  if (grad_enabled())
    return composed_gradients(k, upstream, 5, [&](const Tensors& in) {
      const auto [y, c] = composed(p, in[0], {in[1], in[2], in[3], in[4]}, k.saved(5));
      return Tensors{y, c};
    });
  const Tensor weight = k.saved(3), lengths = k.saved(5);
  StepMatrix matrix(weight, p.batch);  // (gates, H)
  const States s{k.saved(6), k.saved(7), k.saved(8)};
  const TensorOptions type = like(weight);
  const Tensor g = upstream[0].defined() ? dense(upstream[0]) : zeros({p.steps, p.batch, p.hidden}, type);
  const Tensor dh = zeros({p.batch, p.hidden}, type);
  const bool gru = p.cell == RecurrentCell::gru;
  Tensor dc;
  if (p.cell == RecurrentCell::lstm) dc = upstream[1].defined() ? dense(upstream[1]).clone() : zeros_like(dh);
  const Tensor dx = gradients_of_gates(p, weight), ds = gru ? gradients_of_gates(p, weight) : dx;
  const double beta = gru || lengths.defined() ? 1.0 : 0.0;  // else the cell leaves 0 in dh
  Stream stream = current_stream(weight.device());
  for (int64_t i = p.steps - 1; i >= 0; --i) {
    const int64_t t = p.step(i), before = p.before(t), after = p.after(t);
    kernels_of(p.cell).backward({item(dx, t), gru ? item(ds, t) : TensorView{}, dh.tensor_view(), view_of(dc),
                                 item(g, t), item(s.gates, t), item(s.h, after), item(s.c, after), item(s.h, before),
                                 item(s.c, before), view_of(lengths), t},
                                stream);
    if (i > 0 || k.needs(1))
      matrix.multiply(dh.tensor_view(), item(ds, t), {}, beta, stream);
  }
  Grads grads(5);
  grads[0] = dx;
  grads[1] = dh;
  grads[2] = dc;
  const Tensor rows = reshape(ds, {p.steps * p.batch, p.gates});
  const Tensor before = narrow(s.h, 0, p.before(0), p.steps);  // (T, B, H)
  if (k.needs(3)) grads[3] = matmul(transpose(rows, 0, 1), reshape(before, {p.steps * p.batch, p.hidden}));
  if (k.needs(4)) grads[4] = sum(rows, {0});
  return grads;
}

}  // namespace

std::pair<Tensor, Tensor> recurrent_steps(RecurrentCell cell, const Tensor& from_input, const RecurrentInputs& inputs,
                                          const RecurrentSteps& steps) {
  const auto with = [&](auto&& convert) {
    return recurrent_steps(cell, convert(from_input),
                           {convert(inputs.h), convert(inputs.c), convert(inputs.weight_hh), convert(inputs.bias_hh)},
                           steps);
  };
  if (autocast_enabled()) {
    const AutocastOff off;
    return with(lowered);
  }
  const Plan p = plan_of(cell, from_input, steps.reverse);
  check(p, from_input, inputs, steps);
  if (needs_float32(kernels_of(cell).forward, from_input)) {
    const auto [y, c] = with(widened);
    return {to(y, from_input.dtype()), rounded(c, from_input.dtype())};
  }
  const auto& [h, c, weight, bias] = inputs;
  if (tracing()) [[unlikely]] return composed(p, from_input, inputs, steps.lengths);
  const bool recorded = would_record({from_input, h, c, weight, bias});
  const Tensor lengths = dense(steps.lengths);
  const States s = unrecorded([&] {
    return run_forward(p, dense(from_input), {dense(h), dense(c), dense(weight), dense(bias)}, lengths, recorded);
  });
  const Shape sizes{p.steps, p.batch, p.hidden}, state{p.batch, p.hidden};
  const int64_t of_a_step = p.batch * p.hidden;
  const Tensor y = alias(s.h, sizes, contiguous_strides(sizes), p.after(0) * of_a_step);
  Tensors outputs{y};
  if (s.c.defined()) {
    const int64_t last = recorded ? p.after(p.step(p.steps - 1)) : 0;
    outputs.push_back(alias(s.c, state, contiguous_strides(state), last * of_a_step));
  }
  if (Context* k = record("recurrent_steps", outputs, Tensors{from_input, h, c, weight, bias}, fused_gradients))
    k->save(from_input, h, c, weight, bias, lengths, s.h, s.c, s.gates).set(p);
  return {y, outputs.size() > 1 ? outputs[1] : Tensor()};
}

}  // namespace levin
