// Scaled dot-product attention by blocks.

#include "../../errors.h"
#include "../autocast.h"
#include "../layout.h"
#include "../values.h"
#include "composed.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/attention.h>

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace levin {

using namespace ops;

namespace {

constexpr const char* kAttention = "scaled_dot_product_attention";

/// Returns the leading sizes of the result. With `gqa`, any number of heads of k and v fits those of q.
Shape common_leading(const Tensor& q, const Tensor& k, const Tensor& v, bool gqa = false) {
  Shape of_k = leading(k, 2), of_v = leading(v, 2);
  if (gqa) of_k[of_k.size() - 1] = of_v[of_v.size() - 1] = 1;
  return broadcast_shapes(broadcast_shapes(leading(q, 2), of_k, kAttention), of_v, kAttention);
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const auto shapes = [&] {
    return fmt::format("q is {}, k {}, v {}", to_string(q.sizes()), to_string(k.sizes()), to_string(v.sizes()));
  };
  check_same_dtype(kAttention, {{"q", q}, {"k", k}, {"v", v}});
  check_floating(kAttention, q, "q");
  if (q.device() != k.device() || q.device() != v.device())
    fail<DeviceError>("[{}] q is on {}, k on {}, v on {}. Move them with x.to(device).", kAttention, q.device(),
                      k.device(), v.device());
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2)
    fail<ShapeError>("[{}] {}: each needs two dimensions at least.", kAttention, shapes());
  if (q.size(-1) != k.size(-1)) fail<ShapeError>("[{}] {}: the last sizes of q and k differ.", kAttention, shapes());
  if (k.size(-2) != v.size(-2)) fail<ShapeError>("[{}] {}: k and v differ in length.", kAttention, shapes());
  if (k.size(-2) == 0 || q.size(-1) == 0)
    fail<ShapeError>("[{}] {}: there is nothing to attend to.", kAttention, shapes());
  if (!(o.dropout_p >= 0.0 && o.dropout_p <= 1.0))
    fail<ValueError>("[{}] dropout_p {} is no probability; it must be between 0 and 1.", kAttention, o.dropout_p);
}

void check_mask(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const Tensor& mask = o.attn_mask;
  if (!mask.defined()) return;
  if (o.is_causal)
    fail<ValueError>("[{}] attn_mask and is_causal exclude each other; put the triangle into the mask.", kAttention);
  if (mask.dtype() != kBool && !mask.is_floating())
    fail<DTypeError>("[{}] attn_mask is {}; bool or a floating type is needed.", kAttention, mask.dtype());
  const Shape scores = joined(common_leading(q, k, v, o.enable_gqa), {q.size(-2), k.size(-2)});
  bool fits = mask.dim() <= scores.size();
  for (int d = 1; fits && d <= mask.dim(); ++d) fits = mask.size(-d) == 1 || mask.size(-d) == scores[scores.size() - d];
  if (!fits)
    fail<ShapeError>("[{}] attn_mask is {}, which does not broadcast to the scores of shape {}.", kAttention,
                     mask.sizes(), scores);
}

void check_heads(const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool have_heads = q.dim() > 2 && k.dim() > 2 && v.dim() > 2;
  if (!have_heads || k.size(-3) != v.size(-3) || k.size(-3) == 0 || q.size(-3) % k.size(-3) != 0)
    fail<ShapeError>(
        "[{}] q is {}, k {}, v {}: with enable_gqa, axis -3 holds the heads, of which k and v have as many, and q a "
        "multiple.",
        kAttention, q.sizes(), k.sizes(), v.sizes());
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

/// Returns x without history, with unit stride along the last axis.
Tensor readable(const Tensor& x) {
  no_grad guard;
  const Tensor plain = detach(x);
  return x.stride(-1) == 1 || x.size(-1) == 1 ? plain : contiguous(plain);
}

/// Returns x's strides with 1 along the last axis, whatever the stride of an axis of size 1 is.
Shape row_strides(const Tensor& x) {
  Shape strides = x.strides();
  strides[x.dim() - 1] = 1;
  return strides;
}

/// Returns memory for the gradients of q, k and v, in the order of their axes. If these are neighbouring parts of one
/// tensor, as a projection's, so are the gradients, and nobody has to join them.
std::array<Tensor, 3> empty_gradients(const Tensor& q, const Tensor& k, const Tensor& v) {
  const int64_t step = k.storage_offset() - q.storage_offset();
  if (step > 0 && v.storage_offset() - k.storage_offset() == step && k.shares_storage(q) && v.shares_storage(q) &&
      k.sizes() == q.sizes() && v.sizes() == q.sizes() && k.strides() == q.strides() && v.strides() == q.strides() &&
      q.dim() < kMaxDims) {
    Shape sizes = q.sizes(), strides = row_strides(q);  // to (3, ..., L, E)
    sizes.insert(0, 3), strides.insert(0, step);
    const Tensor whole = empty_ordered(sizes, strides, like(q));
    Shape part = whole.strides();
    part.erase(0);
    const auto at = [&](int64_t i) { return alias(whole, q.sizes(), part, i * whole.stride(0)); };
    return {at(0), at(1), at(2)};
  }
  const auto alone = [](const Tensor& x) { return empty_ordered(x.sizes(), row_strides(x), like(x)); };
  return {alone(q), alone(k), alone(v)};
}

TensorView row_view(const Tensor& x) {
  TensorView v = x.tensor_view();
  v.strides = row_strides(x);
  return v;
}

/// Returns the kernels' mask for scores (lead, rows, columns).
kernels::AttentionMask kernel_mask(const Tensor& prepared, const Shape& scores, const AttentionPlan& plan) {
  no_grad guard;
  kernels::AttentionMask m{.dropout = plan.dropout, .random = plan.random};
  if (prepared.defined()) m.scores = expand(prepared, scores).tensor_view();
  return m;
}

Grads fused_gradients(Context& c, const Tensor& g) {
  const auto& plan = c.get<AttentionPlan>();
  const AttentionInputs x{c.saved(0), c.saved(1), c.saved(2), c.saved(5)};
  if (grad_enabled()) return composed_attention_gradients(x, g, plan, c.needs(3));
  const Tensor y = readable(c.saved(3)), lse = c.saved(4);
  const Tensor dy = readable(g), q = readable(x.q), k = readable(x.k), v = readable(x.v);
  const auto [dq, dk, dv] = empty_gradients(q, k, v);
  const Tensor mask = x.mask.defined() ? prepared_mask(x.mask, q) : Tensor();
  launch(kernels::attention_backward, q.device(),
         {dq.tensor_view(), dk.tensor_view(), dv.tensor_view(), row_view(dy), row_view(y), lse.tensor_view(),
          row_view(q), row_view(k), row_view(v), plan.scale, plan.causal,
          kernel_mask(mask, joined(leading(q, 2), {q.size(-2), k.size(-2)}), plan)});
  return {dq, dk, dv, c.needs(3) ? attention_mask_gradient(x, dy, y, lse, plan) : Tensor()};
}

/// Runs the blockwise kernel.
Tensor blockwise(const AttentionInputs& x, const AttentionPlan& plan) {
  const Shape rows = leading(x.q, 1), sizes = joined(rows, {x.v.size(-1)});
  const Tensor q = readable(x.q), k = readable(x.k), v = readable(x.v);
  const Tensor y = empty_ordered(sizes, row_strides(q), like(q));
  const Tensor lse = empty(rows, {.dtype = statistics_type(x.q), .device = x.q.device()});
  const Tensor mask = x.mask.defined() ? prepared_mask(x.mask, q) : Tensor();
  launch(kernels::attention, q.device(),
         {y.tensor_view(), lse.tensor_view(), row_view(q), row_view(k), row_view(v), plan.scale, plan.causal,
          kernel_mask(mask, joined(leading(q, 2), {q.size(-2), k.size(-2)}), plan)});
  if (Context* c = record(kAttention, y, {x.q, x.k, x.v, x.mask}, fused_gradients))
    c->save(x.q, x.k, x.v).save_output(y).save(lse, x.mask).set(plan);
  return y;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  LEVIN_AUTOCAST(lower, scaled_dot_product_attention, q, k, v, o);
  LEVIN_TRACE_CALL(scaled_dot_product_attention(q, k, v, o), kAttention, {q, k, v, o.attn_mask},
                   {{"causal", o.is_causal}, {"dropout", o.dropout_p}});
  check(q, k, v, o);
  if (o.enable_gqa) check_heads(q, k, v);
  check_mask(q, k, v, o);
  if (o.enable_gqa) return grouped_query_attention(q, k, v, o);
  const bool fused = v.size(-1) > 0;
  if (needs_float32(kernels::attention, q) || (is_16_bit(q) && !fused))  // the composed form would round at every step
    return to(scaled_dot_product_attention(widened(q), widened(k), widened(v), o), q.dtype());
  const Shape lead = common_leading(q, k, v);
  const auto spread = [&](const Tensor& x) {
    return leading(x, 2) == lead ? x : expand(x, joined(lead, {x.size(-2), x.size(-1)}));
  };
  const AttentionInputs x{spread(q), spread(k), spread(v), o.attn_mask};
  AttentionPlan plan{.scale = o.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1)))),
                     .causal = o.is_causal,
                     .dropout = o.dropout_p};
  if (o.dropout_p > 0.0) {
    const auto rows = static_cast<std::uint64_t>(lead.numel() * q.size(-2));
    plan.random =
        default_generator().reserve(rows * kernels::attention_random_blocks(k.size(-2)), current_stream(q.device()));
  }
  return fused && !tracing() ? blockwise(x, plan) : composed_attention(x, plan);
}

}  // namespace levin
