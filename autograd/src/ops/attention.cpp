// Scaled dot-product attention: by blocks where possible, otherwise composed of other operations. The composed form
// also computes second derivatives, and the tests use it as a reference.

#include "autocast.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/kernels/attention.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace levin {

using namespace ops;

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct Plan {
  double scale;
  bool causal;
};

Shape leading(const Tensor& x) { return Shape(x.sizes().begin(), x.sizes().end() - 2); }

void check(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const char* op = "scaled_dot_product_attention";
  const auto shapes = [&] {
    return fmt::format("q is {}, k {}, v {}", to_string(q.sizes()), to_string(k.sizes()), to_string(v.sizes()));
  };
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype() || !q.is_floating())
    throw DTypeError(fmt::format("[{}] q is {}, k {}, v {}; one floating type is needed.", op, name_of(q.dtype()),
                                 name_of(k.dtype()), name_of(v.dtype())));
  if (q.device() != k.device() || q.device() != v.device())
    throw DeviceError(fmt::format("[{}] q is on {}, k on {}, v on {}. Move them with x.to(device).", op,
                                  to_string(q.device()), to_string(k.device()), to_string(v.device())));
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2)
    throw ShapeError(fmt::format("[{}] {}: each needs two dimensions at least.", op, shapes()));
  if (q.size(-1) != k.size(-1))
    throw ShapeError(fmt::format("[{}] {}: the last sizes of q and k differ.", op, shapes()));
  if (k.size(-2) != v.size(-2)) throw ShapeError(fmt::format("[{}] {}: k and v differ in length.", op, shapes()));
  if (k.size(-2) == 0 || q.size(-1) == 0)
    throw ShapeError(fmt::format("[{}] {}: there is nothing to attend to.", op, shapes()));
  if (o.dropout < 0.0 || o.dropout > 1.0)
    throw ValueError(fmt::format("[{}] dropout {} is no probability; it must be between 0 and 1.", op, o.dropout));
  if (o.mask.defined() && o.causal)
    throw ValueError(fmt::format("[{}] a mask and causal exclude each other; put the triangle into the mask.", op));
  if (o.mask.defined() && o.mask.dtype() != kBool && !o.mask.is_floating())
    throw DTypeError(
        fmt::format("[{}] the mask is {}; bool or a floating type is needed.", op, name_of(o.mask.dtype())));
}

/// True above the diagonal: the positions that a causal mask hides.
Tensor future(const Tensor& q, const Tensor& k) {
  return triu(ones({q.size(-2), k.size(-2)}, {.dtype = kBool, .device = q.device()}), 1);
}

Tensor scores_of(const Tensor& q, const Tensor& k, const Plan& plan) {
  const Tensor scores = mul(matmul(q, transpose(k, -2, -1)), plan.scale);
  return plan.causal ? masked_fill(scores, future(q, k), kMinusInfinity) : scores;
}

/// Computes softmax(scores + mask); a row that is masked entirely gives zeros.
Tensor masked_softmax(const Tensor& scores, const Tensor& mask) {
  if (!mask.defined()) return softmax(scores, -1);
  const bool choice = mask.dtype() == kBool;
  const Tensor hidden = choice ? logical_not(mask) : eq(detach(mask), kMinusInfinity);
  const Tensor blind = all(hidden, {-1}, true);
  const Tensor shown = choice ? scores : add(scores, to(masked_fill(mask, hidden, 0), scores.dtype()));
  const Tensor seen = masked_fill(shown, logical_and(hidden, logical_not(blind)), kMinusInfinity);
  return masked_fill(softmax(seen, -1), blind, 0);
}

Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o, const Plan& plan) {
  Tensor p = masked_softmax(scores_of(q, k, plan), o.mask);
  if (o.dropout > 0.0) p = dropout(p, o.dropout);
  return matmul(p, v);
}

/// Computes the gradients with public operations, which record; those of 16-bit floats are rounded once.
Grads composed_gradients(const Tensor& g, const Tensor& q, const Tensor& k, const Tensor& v, const Plan& plan) {
  if (is_16_bit(q)) {
    Grads grads = composed_gradients(widened(g), widened(q), widened(k), widened(v), plan);
    for (Tensor& x : grads) x = to(x, q.dtype());
    return grads;
  }
  const Tensor p = softmax(scores_of(q, k, plan), -1);
  const Tensor dp = matmul(g, transpose(v, -2, -1));
  const Tensor ds = mul(mul(p, sub(dp, sum(mul(p, dp), {-1}, true))), plan.scale);
  return {matmul(ds, k), matmul(transpose(ds, -2, -1), q), matmul(transpose(p, -2, -1), g)};
}

/// Returns x without history, with unit stride along the last axis.
Tensor readable(const Tensor& x) {
  no_grad guard;
  const Tensor plain = detach(x);
  return x.stride(-1) == 1 || x.size(-1) == 1 ? plain : contiguous(plain);
}

TensorView row_view(const Tensor& x) {
  TensorView v = x.tensor_view();
  v.strides[x.dim() - 1] = 1;
  return v;
}

Grads fused_gradients(Context& c, const Tensor& g) {
  const auto& plan = c.get<Plan>();
  const Tensor q = c.saved(0), k = c.saved(1), v = c.saved(2), y = c.saved(3), lse = c.saved(4);
  if (grad_enabled()) return composed_gradients(g, q, k, v, plan);
  const Tensor dy = contiguous(g), rq = readable(q), rk = readable(k), rv = readable(v);
  const Tensor dq = empty(q.sizes(), like(q)), dk = empty(k.sizes(), like(k)), dv = empty(v.sizes(), like(v));
  Stream stream = current_stream(q.device());
  kernels::attention_backward({dq.tensor_view(), dk.tensor_view(), dv.tensor_view(), dy.tensor_view(), y.tensor_view(),
                               lse.tensor_view(), row_view(rq), row_view(rk), row_view(rv), plan.scale, plan.causal},
                              stream);
  return {dq, dk, dv};
}

/// Runs the blockwise kernel; all three inputs have the same leading sizes.
Tensor blockwise(const Tensor& q, const Tensor& k, const Tensor& v, const Plan& plan) {
  Shape rows = leading(q);
  rows.push_back(q.size(-2));
  Shape sizes = rows;
  sizes.push_back(v.size(-1));
  Tensor y = empty(sizes, like(q)), lse = empty(rows, {.dtype = statistics_type(q), .device = q.device()});
  const Tensor rq = readable(q), rk = readable(k), rv = readable(v);
  Stream stream = current_stream(q.device());
  kernels::attention(
      {y.tensor_view(), lse.tensor_view(), row_view(rq), row_view(rk), row_view(rv), plan.scale, plan.causal}, stream);
  if (Context* c = record("scaled_dot_product_attention", y, {q, k, v}, fused_gradients)) {
    c->save(q, k, v);
    c->save_output(y);
    c->save(lse);
    c->set(plan);
  }
  return y;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  LEVIN_AUTOCAST(lower, scaled_dot_product_attention, q, k, v, o);
  check(q, k, v, o);
  const bool fused = !o.mask.defined() && o.dropout == 0.0 && v.size(-1) > 0;
  if (needs_float32(kernels::attention, q) || (is_16_bit(q) && !fused))  // the composed form would round at every step
    return to(scaled_dot_product_attention(widened(q), widened(k), widened(v), o), q.dtype());
  const Plan plan{o.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1)))), o.causal};
  if (!fused) return composed(q, k, v, o, plan);
  const char* op = "scaled_dot_product_attention";
  const Shape lead = broadcast_shapes(broadcast_shapes(leading(q), leading(k), op), leading(v), op);
  const auto spread = [&](const Tensor& x) {
    if (leading(x) == lead) return x;
    Shape sizes = lead;
    sizes.push_back(x.size(-2));
    sizes.push_back(x.size(-1));
    return expand(x, sizes);
  };
  return blockwise(spread(q), spread(k), spread(v), plan);
}

}  // namespace levin
