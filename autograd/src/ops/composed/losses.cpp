// Losses that are compositions of elementwise operations and reductions.

#include "../../errors.h"
#include "../autocast.h"
#include "../elementwise/common.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/loss.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/statistics.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/core/warning.h>
#include <levin/kernels/loss.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace levin {

using namespace ops;

namespace {

Tensor reduced(const Tensor& loss, Reduction r) {
  return r == Reduction::none ? loss : r == Reduction::mean ? mean(loss) : sum(loss);
}

void require_same_sizes(const char* op, const Argument& a, const Argument& b) {
  if (a.tensor.sizes() != b.tensor.sizes())
    fail<ShapeError>("[{}] {} is {}, and {} is {}; they must have the same sizes.", op, a.name, a.tensor.sizes(),
                     b.name, b.tensor.sizes());
}

/// max(0, x); its gradient at 0 is 0.
Tensor positive_part(const Tensor& x) { return relu(x); }

}  // namespace

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, Reduction reduction) {
  check_floating("binary_cross_entropy", input, "input");
  require_same_sizes("binary_cross_entropy", {"input", input}, {"target", target});
  // As in PyTorch log(p) >= -100, and the gradient (p - target) / (p (1 - p)) has a divisor of at least 1e-12.
  const Tensor p = input.detach(), inside = ge(mul(rsub(p, 1.0), p), 1e-12), safe = where(inside, input, 0.5);
  const Tensor plain = sub(mul(sub(target, 1.0), log(rsub(safe, 1.0))), mul(target, log(safe)));
  const Tensor clamped =
      sub(mul(sub(target, 1.0), clamp(log(rsub(p, 1.0)), -100.0)), mul(target, clamp(log(p), -100.0)));
  const Tensor at_ends = add(clamped, mul(sub(input, p), mul(sub(p, target.detach()), 1e12)));
  const Tensor loss = where(inside, plain, at_ends);
  return reduced(weight.defined() ? mul(loss, weight) : loss, reduction);
}

namespace {

/// d^2 / 2 up to |d| = delta, and delta (|d| - delta / 2) beyond, with d = input - target; the derivative is d clamped
/// to [-delta, delta].
Tensor huber_of(const Tensor& input, const Tensor& target, double delta) {
  const DType t = floating_type(result_type(input, target));
  const Tensor y = binary(kernels::huber, "huber", input, target, t, t, delta);
  if (Context* k = record("huber", y, {input, target}, [](Context& c, const Tensor& g) -> Grads {
        const double limit = c.get<double>();
        const Tensor d = mul(g, clamp(sub(c.saved(0), c.saved(1)), -limit, limit));
        return {d, c.needs(1) ? neg(d) : Tensor()};
      }))
    k->save(input, target).set(delta);
  return y;
}

struct HuberSum {
  double limit, scale;
};

Grads gradients_of_huber_sum(Context& k, const Tensor& g) {
  const auto& [limit, scale] = k.get<HuberSum>();
  const Tensor x = k.saved(0), target = k.saved(1), c = mul(g, scale);
  Tensor d;
  if (grad_enabled()) {
    d = sub(x, target);
    d = mul(limit < std::numeric_limits<double>::infinity() ? clamp(d, -limit, limit) : d, c);
  } else {
    d = ternary(kernels::huber_slope, "huber", x, target, c, x.dtype(), limit);
  }
  return {d, k.needs(1) ? neg(d) : Tensor()};
}

/// Returns factor times the sum or mean of the losses of huber_of, in one pass over memory; undefined where only the
/// composition can do it.
Tensor huber_sum(const Tensor& input, const Tensor& target, Reduction reduction, double limit, double factor) {
  const bool wide = input.dtype() == kFloat32 || input.dtype() == kFloat64;
  if (reduction == Reduction::none || !wide || input.numel() == 0 || tracing() ||
      !kernels::huber_sum.has(input.device().type) || target.sizes() != input.sizes() ||
      target.dtype() != input.dtype() || target.device() != input.device())
    return {};
  const double scale = reduction == Reduction::mean ? factor / static_cast<double>(input.numel()) : factor;
  Tensor loss = empty({}, like(input));
  launch(kernels::huber_sum, input.device(),
         {loss.tensor_view(), dense(input).tensor_view(), dense(target).tensor_view(), limit, scale});
  if (Context* k = record("huber_sum", loss, {input, target}, gradients_of_huber_sum))
    k->save(input, target).set(HuberSum{limit, scale});
  return loss;
}

/// A target (N) beside an input (N, 1) would give N * N differences: PyTorch warns too.
void warn_of_broadcast(const char* op, const Tensor& input, const Tensor& target) {
  if (input.sizes() == target.sizes()) return;
  warn_once(fmt::format("[{}] input is {}, target is {}: they are broadcast. Give them one size if that is not meant.",
                        op, to_string(input.sizes()), to_string(target.sizes())));
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  LEVIN_AUTOCAST(float32, mse_loss, input, target, reduction);
  warn_of_broadcast("mse_loss", input, target);
  const Tensor loss = huber_sum(input, target, reduction, std::numeric_limits<double>::infinity(), 2);
  return loss.defined() ? loss : reduced(square(sub(input, target)), reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  LEVIN_AUTOCAST(float32, l1_loss, input, target, reduction);
  warn_of_broadcast("l1_loss", input, target);
  return reduced(abs(sub(input, target)), reduction);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  if (!(beta >= 0)) fail<ValueError>("[smooth_l1_loss] beta is {}. Give 0 or more.", beta);
  if (beta == 0) return l1_loss(input, target, reduction);
  if (Tensor loss = huber_sum(input, target, reduction, beta, 1 / beta); loss.defined()) return loss;
  const Tensor loss = reduced(huber_of(input, target, beta), reduction);
  return beta == 1 ? loss : div(loss, beta);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
  if (!(delta > 0)) fail<ValueError>("[huber_loss] delta is {}. Give a positive number.", delta);
  const Tensor loss = huber_sum(input, target, reduction, delta, 1);
  return loss.defined() ? loss : reduced(huber_of(input, target, delta), reduction);
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options) {
  const Tensor loss =
      options.log_target ? mul(exp(target), sub(target, input)) : sub(xlogy(target, target), mul(target, input));
  if (!options.batchmean) return reduced(loss, options.reduction);
  return div(sum(loss), input.dim() > 0 ? input.size(0) : 1);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllOptions& options) {
  Tensor loss =
      options.log_input ? sub(exp(input), mul(target, input)) : sub(input, mul(target, log(add(input, options.eps))));
  if (options.full) {
    const Tensor counted = le(target, 1), n = masked_fill(target, counted, 1);
    const Tensor stirling = add(sub(mul(n, log(n)), n), mul(log(mul(n, 2 * std::numbers::pi)), 0.5));
    loss = add(loss, masked_fill(stirling, counted, 0));
  }
  return reduced(loss, options.reduction);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNllOptions& options) {
  Tensor variance = var;
  if (var.sizes() != input.sizes()) {
    Shape without_last = input.sizes(), one = input.sizes();
    if (input.dim() > 0) {
      without_last.erase(input.dim() - 1);
      one[input.dim() - 1] = 1;
    }
    if (input.dim() > 0 && var.sizes() == without_last)
      variance = unsqueeze(var, -1);
    else if (var.sizes() != one && var.numel() != 1)
      fail<ShapeError>("[gaussian_nll_loss] var is {}, but input of {} needs its sizes, {} or {}.", var.sizes(),
                       input.sizes(), one, without_last);
  }
  if (any(lt(variance.detach(), 0)).item<bool>())
    throw ValueError("[gaussian_nll_loss] var has a negative element; pass variances, not their logarithms.");
  // The variance is clamped without an effect on its gradient.
  variance = variance.requires_grad() ? add(variance, relu(rsub(variance.detach(), options.eps)))
                                      : clamp(variance, options.eps);
  Tensor loss = mul(add(log(variance), div(square(sub(input, target)), variance)), 0.5);
  if (options.full) loss = add(loss, 0.5 * std::log(2 * std::numbers::pi));
  return reduced(loss, options.reduction);
}

Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& y, double margin, Reduction reduction) {
  return reduced(positive_part(add(mul(neg(y), sub(x1, x2)), margin)), reduction);
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin, Reduction reduction) {
  const Tensor apart = masked_fill(positive_part(rsub(x, margin)), eq(y, 1), 0);
  return reduced(add(apart, masked_fill(x, eq(y, -1), 0)), reduction);
}

Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& y, double margin, Reduction reduction) {
  require_same_sizes("cosine_embedding_loss", {"x1", x1}, {"x2", x2});
  constexpr double tiny = 1e-12;  // added to the squares, as in PyTorch
  const Tensor products = mul(add(sum(square(x1), -1), tiny), add(sum(square(x2), -1), tiny));
  const Tensor cosine = div(sum(mul(x1, x2), -1), sqrt(products));
  const Tensor apart = positive_part(sub(cosine, margin)), together = rsub(cosine, 1);
  const Tensor zero = zeros_like(cosine);
  return reduced(add(where(eq(y, 1), together, zero), where(eq(y, -1), apart, zero)), reduction);
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  // Not log1p(exp(-y x)), which overflows.
  return reduced(neg(logsigmoid(mul(y, x))), reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& y, const Tensor& weight, Reduction reduction) {
  const Tensor loss = neg(add(mul(y, logsigmoid(x)), mul(rsub(y, 1), logsigmoid(neg(x)))));
  return reduced(mean(weight.defined() ? mul(loss, weight) : loss, -1), reduction);
}

Tensor multilabel_margin_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  check_floating("multilabel_margin_loss", x);
  if (x.dim() != 1 && x.dim() != 2)
    fail<ShapeError>("[multilabel_margin_loss] x is {}, expected is (B, C) or (C,).", x.sizes());
  const Tensor labels = as_int64("multilabel_margin_loss", {"y", y});
  if (labels.sizes() != x.sizes())
    fail<ShapeError>("[multilabel_margin_loss] y is {}, and x is {}; they need the same sizes.", y.sizes(), x.sizes());
  const Tensor listed = cumprod(ge(labels, 0).to(kInt64), -1);  // 1 up to the first -1
  const Tensor at = mul(labels, listed);                        // 0 where nothing is listed
  const Tensor is_target = scatter_add(zeros_like(labels), -1, at, listed);
  // (..., C, C): each listed class against each class that is no target
  const Tensor margins = positive_part(add(sub(unsqueeze(x, -2), unsqueeze(gather(x, -1, at), -1)), 1));
  const Tensor counts = mul(unsqueeze(listed, -1), unsqueeze(eq(is_target, 0).to(kInt64), -2));
  return reduced(div(sum(where(eq(counts, 0), 0.0, margins), {-2, -1}), x.size(-1)), reduction);
}

Tensor multi_margin_loss(const Tensor& x, const Tensor& y, const MultiMarginOptions& options) {
  check_floating("multi_margin_loss", x);
  if (options.p != 1 && options.p != 2) fail<ValueError>("[multi_margin_loss] p is {}. Give 1 or 2.", options.p);
  Shape expected = x.sizes();
  if (x.dim() != 1 && x.dim() != 2)
    fail<ShapeError>("[multi_margin_loss] x is {}, expected is (B, C) or (C,).", x.sizes());
  expected.erase(x.dim() - 1);
  const Tensor labels = as_int64("multi_margin_loss", {"y", y});
  if (labels.sizes() != expected)
    fail<ShapeError>("[multi_margin_loss] y is {}, expected is {} for x of {}.", y.sizes(), expected, x.sizes());
  const int64_t classes = x.size(-1);
  const Tensor at = unsqueeze(labels, -1), own = eq(arange(classes).to(x.device()), at);
  Tensor loss = positive_part(add(sub(x, gather(x, -1, at)), options.margin));
  if (options.p == 2) loss = square(loss);
  if (options.weight.defined()) loss = mul(loss, reshape(index_select(options.weight, 0, ravel(labels)), at.sizes()));
  return reduced(div(sum(masked_fill(loss, own, 0), -1), classes), options.reduction);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  return norm(add(sub(x1, x2), eps), p, -1, keepdim);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t axis, double eps) {
  const Shape sizes = broadcast_shapes(x1.sizes(), x2.sizes(), "cosine_similarity");
  const Tensor a = expand(x1, sizes), b = expand(x2, sizes);
  const auto length = [&](const Tensor& t) { return clamp(norm(t, 2.0, axis, true), eps); };
  return sum(mul(div(a, length(a)), div(b, length(b))), axis);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return pairwise_distance(a, b, options.p, options.eps);
  };
  return triplet_loss_of(distance(anchor, positive), distance(anchor, negative),
                         options.swap ? distance(positive, negative) : Tensor(), options);
}

Tensor triplet_loss_of(const Tensor& near, const Tensor& far, const Tensor& between,
                       const TripletMarginOptions& options) {
  const Tensor least = between.defined() ? minimum(far, between) : far;
  return reduced(positive_part(add(sub(near, least), options.margin)), options.reduction);
}

Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, const FocalOptions& options) {
  check_floating("sigmoid_focal_loss", logits, "logits");
  require_same_sizes("sigmoid_focal_loss", {"logits", logits}, {"target", target});
  const Tensor t = target.to(logits.dtype()), p = sigmoid(logits);
  // 1 - p of the target: p where the target is 0.
  const Tensor missing = add(mul(p, rsub(t, 1.0)), mul(rsub(p, 1.0), t));
  Tensor loss = mul(bce_with_logits(logits, t, {.reduction = Reduction::none}), pow(missing, options.gamma));
  if (options.alpha >= 0) loss = mul(loss, add(mul(t, 2 * options.alpha - 1), 1 - options.alpha));
  return reduced(loss, options.reduction);
}

}  // namespace levin
