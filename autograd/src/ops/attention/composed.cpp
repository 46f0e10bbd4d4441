#include "composed.h"

#include "../dropout.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/kernels/attention.h>

#include <algorithm>
#include <limits>

namespace levin::ops {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// True above the diagonal: the positions that a causal mask hides.
Tensor future(const Tensor& q, const Tensor& k) {
  return triu(ones({q.size(-2), k.size(-2)}, {.dtype = kBool, .device = q.device()}), 1);
}

Tensor scores_of(const Tensor& q, const Tensor& k, const AttentionPlan& plan) {
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

/// Drops elements of x (..., rows, S) as the kernels do: each row begins at a Philox block. `first` is the number of
/// x's first row among all rows of scores.
Tensor drop(const Tensor& x, const AttentionPlan& plan, int64_t first = 0) {
  if (plan.dropout == 0.0) return x;
  const int64_t columns = x.size(-1);
  const std::uint64_t blocks = kernels::attention_random_blocks(columns);
  PhiloxState from = plan.random;
  from.offset += static_cast<std::uint64_t>(first) * blocks;
  const int64_t padding = static_cast<int64_t>(blocks) * 4 - columns;
  if (padding == 0) return dropout_at(x, plan.dropout, from);
  return narrow(dropout_at(pad(x, {0, padding}), plan.dropout, from), -1, 0, columns);
}

/// Returns matrix number `n` of x (..., rows, columns), counted over the leading axes.
Tensor matrix_of(Tensor x, int64_t n) {
  for (int d = x.dim() - 3; d >= 0; --d) {
    const int64_t size = x.size(d);
    x = select(x, d, n % size);
    n /= size;
  }
  return x;
}

/// Sums x (rows, columns) over the axes of which `target` has one element, and adds the sums to it.
void accumulate(const Tensor& target, Tensor x) {
  for (const int axis : {0, 1})
    if (target.size(axis) == 1 && x.size(axis) != 1) x = sum(x, {axis}, true);
  target.add_(x);
}

}  // namespace

Tensor prepared_mask(const Tensor& mask, const Tensor& q) {
  no_grad guard;
  Tensor m = detach(mask);
  while (m.dim() < 2) m = unsqueeze(m, 0);
  if (m.dtype() != kBool) m = to(m, statistics_type(q));
  return m.stride(-1) <= 1 || m.size(-1) == 1 ? m : contiguous(m);
}

Tensor composed_attention(const AttentionInputs& x, const AttentionPlan& plan) {
  return matmul(drop(masked_softmax(scores_of(x.q, x.k, plan), x.mask), plan), x.v);
}

Grads composed_attention_gradients(const AttentionInputs& x, const Tensor& g, const AttentionPlan& plan, bool of_mask) {
  if (is_16_bit(x.q)) {
    const AttentionInputs wide{widened(x.q), widened(x.k), widened(x.v), x.mask};
    Grads grads = composed_attention_gradients(wide, widened(g), plan, of_mask);
    for (int i = 0; i < 3; ++i) grads[i] = to(grads[i], x.q.dtype());
    return grads;
  }
  const Tensor p = masked_softmax(scores_of(x.q, x.k, plan), x.mask);
  const Tensor dp = drop(matmul(g, transpose(x.v, -2, -1)), plan);
  const Tensor ds = mul(p, sub(dp, sum(mul(p, dp), {-1}, true))), scaled = mul(ds, plan.scale);
  return {matmul(scaled, x.k), matmul(transpose(scaled, -2, -1), x.q), matmul(transpose(drop(p, plan), -2, -1), g),
          of_mask ? ds : Tensor()};
}

Tensor attention_mask_gradient(const AttentionInputs& x, const Tensor& g, const Tensor& y, const Tensor& lse,
                               const AttentionPlan& plan) {
  no_grad guard;
  constexpr int64_t scores_at_once = 1 << 18;
  const Shape lead = leading(x.q, 2);
  const int64_t rows = x.q.size(-2), columns = x.k.size(-2);
  const int64_t step = std::clamp<int64_t>(scores_at_once / columns, 1, std::max<int64_t>(rows, 1));
  const Tensor mask = prepared_mask(x.mask, x.q), total = zeros(mask.sizes(), like(lse));
  const Shape spread = joined(lead, {mask.size(-2), mask.size(-1)});
  const Tensor masks = expand(mask, spread), totals = expand(total, spread), sums = unsqueeze(lse, -1);
  for (int64_t n = 0; n < lead.numel(); ++n) {
    const auto of_n = [n](const Tensor& t) { return widened(matrix_of(t, n)); };
    const Tensor qn = of_n(x.q), kn = transpose(of_n(x.k), 0, 1), vn = transpose(of_n(x.v), 0, 1), gn = of_n(g);
    const Tensor mean = sum(mul(gn, of_n(y)), {1}, true), lse_n = matrix_of(sums, n);  // (L, 1)
    const Tensor mask_n = matrix_of(masks, n), total_n = matrix_of(totals, n);
    for (int64_t i = 0; i < rows; i += step) {
      const auto part = [&](const Tensor& t) {  // of a mask that is the same for all rows: this row
        return t.size(0) == 1 ? t : narrow(t, 0, i, std::min(step, rows - i));
      };
      const Tensor scores = add(mul(matmul(part(qn), kn), plan.scale), part(mask_n));
      const Tensor p = exp(sub(scores, part(lse_n)));
      const Tensor dp = drop(matmul(part(gn), vn), plan, n * rows + i);
      accumulate(part(total_n), mul(p, sub(dp, part(mean))));
    }
  }
  return reshape(total, x.mask.sizes());
}

}  // namespace levin::ops
