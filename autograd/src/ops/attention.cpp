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

constexpr const char* kAttention = "scaled_dot_product_attention";

struct Plan {
  double scale;
  bool causal;
};

Shape leading(const Tensor& x) { return Shape(x.sizes().begin(), x.sizes().end() - 2); }

/// Returns the leading sizes of the result. With `gqa`, any number of heads of k and v fits those of q.
Shape common_leading(const Tensor& q, const Tensor& k, const Tensor& v, bool gqa = false) {
  Shape of_k = leading(k), of_v = leading(v);
  if (gqa) of_k[of_k.size() - 1] = of_v[of_v.size() - 1] = 1;
  return broadcast_shapes(broadcast_shapes(leading(q), of_k, kAttention), of_v, kAttention);
}

/// Returns (lead, rows, columns).
Shape with_matrix(const Shape& lead, int64_t rows, int64_t columns) {
  Shape sizes = lead;
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const auto shapes = [&] {
    return fmt::format("q is {}, k {}, v {}", to_string(q.sizes()), to_string(k.sizes()), to_string(v.sizes()));
  };
  check_same_dtype(kAttention, {{"q", q}, {"k", k}, {"v", v}});
  check_floating(kAttention, q, "q");
  if (q.device() != k.device() || q.device() != v.device())
    throw DeviceError(fmt::format("[{}] q is on {}, k on {}, v on {}. Move them with x.to(device).", kAttention,
                                  to_string(q.device()), to_string(k.device()), to_string(v.device())));
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2)
    throw ShapeError(fmt::format("[{}] {}: each needs two dimensions at least.", kAttention, shapes()));
  if (q.size(-1) != k.size(-1))
    throw ShapeError(fmt::format("[{}] {}: the last sizes of q and k differ.", kAttention, shapes()));
  if (k.size(-2) != v.size(-2))
    throw ShapeError(fmt::format("[{}] {}: k and v differ in length.", kAttention, shapes()));
  if (k.size(-2) == 0 || q.size(-1) == 0)
    throw ShapeError(fmt::format("[{}] {}: there is nothing to attend to.", kAttention, shapes()));
  if (!(o.dropout_p >= 0.0 && o.dropout_p <= 1.0))
    throw ValueError(
        fmt::format("[{}] dropout_p {} is no probability; it must be between 0 and 1.", kAttention, o.dropout_p));
}

void check_mask(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const Tensor& mask = o.attn_mask;
  if (!mask.defined()) return;
  if (o.is_causal)
    throw ValueError(
        fmt::format("[{}] attn_mask and is_causal exclude each other; put the triangle into the mask.", kAttention));
  if (mask.dtype() != kBool && !mask.is_floating())
    throw DTypeError(
        fmt::format("[{}] attn_mask is {}; bool or a floating type is needed.", kAttention, name_of(mask.dtype())));
  const Shape scores = with_matrix(common_leading(q, k, v, o.enable_gqa), q.size(-2), k.size(-2));
  bool fits = mask.dim() <= scores.size();
  for (int d = 1; fits && d <= mask.dim(); ++d) fits = mask.size(-d) == 1 || mask.size(-d) == scores[scores.size() - d];
  if (!fits)
    throw ShapeError(fmt::format("[{}] attn_mask is {}, which does not broadcast to the scores of shape {}.",
                                 kAttention, to_string(mask.sizes()), to_string(scores)));
}

void check_heads(const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool have_heads = q.dim() > 2 && k.dim() > 2 && v.dim() > 2;
  if (!have_heads || k.size(-3) != v.size(-3) || k.size(-3) == 0 || q.size(-3) % k.size(-3) != 0)
    throw ShapeError(fmt::format("[{}] q is {}, k {}, v {}: with enable_gqa, axis -3 holds the heads, of which k and v "
                                 "have as many, and q a multiple.",
                                 kAttention, to_string(q.sizes()), to_string(k.sizes()), to_string(v.sizes())));
}

/// Groups the heads of q, so that those of k and v broadcast over a group: no head is copied.
Tensor grouped_query_attention(const Tensor& q, const Tensor& k, const Tensor& v, AttentionOptions o) {
  const int64_t heads = k.size(-3), group = q.size(-3) / heads;
  const auto split = [&](const Tensor& x) {  // (..., heads of q, L, E) to (..., heads of k, group, L, E)
    Shape sizes = x.sizes();
    sizes[x.dim() - 3] = heads;
    sizes.insert(x.dim() - 2, group);
    return reshape(x, sizes);
  };
  const Tensor& mask = o.attn_mask;
  if (mask.defined() && mask.dim() > 2) o.attn_mask = mask.size(-3) == 1 ? unsqueeze(mask, -3) : split(mask);
  o.enable_gqa = false;
  return flatten(scaled_dot_product_attention(split(q), unsqueeze(k, -3), unsqueeze(v, -3), o), -4, -3);
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
  Tensor p = masked_softmax(scores_of(q, k, plan), o.attn_mask);
  if (o.dropout_p > 0.0) p = dropout(p, o.dropout_p);
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
  if (Context* c = record(kAttention, y, {q, k, v}, fused_gradients)) {
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
  if (o.enable_gqa) check_heads(q, k, v);
  check_mask(q, k, v, o);
  if (o.enable_gqa) return grouped_query_attention(q, k, v, o);
  const bool fused = !o.attn_mask.defined() && o.dropout_p == 0.0 && v.size(-1) > 0;
  if (needs_float32(kernels::attention, q) || (is_16_bit(q) && !fused))  // the composed form would round at every step
    return to(scaled_dot_product_attention(widened(q), widened(k), widened(v), o), q.dtype());
  const Plan plan{o.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1)))), o.is_causal};
  if (!fused) return composed(q, k, v, o, plan);
  const Shape lead = common_leading(q, k, v);
  const auto spread = [&](const Tensor& x) {
    return leading(x) == lead ? x : expand(x, with_matrix(lead, x.size(-2), x.size(-1)));
  };
  return blockwise(spread(q), spread(k), spread(v), plan);
}

}  // namespace levin
