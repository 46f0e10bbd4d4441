// Losses and their gradients.

#include "../errors.h"
#include "autocast.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/loss.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/kernels/loss.h>

#include <limits>

namespace levin {

using namespace ops;

namespace {

using kernels::LossReduction;

LossReduction kernel_reduction(Reduction r) {
  return r == Reduction::none ? LossReduction::none : r == Reduction::mean ? LossReduction::mean : LossReduction::sum;
}

Tensor reduced(const Tensor& loss, Reduction r) {
  return r == Reduction::none ? loss : r == Reduction::mean ? mean(loss) : sum(loss);
}

/// Returns the axis of the classes of x, which is (B, C, ...), or (C) without a batch.
int class_axis(const char* op, const Argument& x) {
  if (x.tensor.dim() == 0)
    fail<ShapeError>("[{}] {} is (), but (batch, classes, ...) or (classes,) is needed.", op, x.name);
  return x.tensor.dim() == 1 ? 0 : 1;
}

void check_weight(const char* op, const Tensor& weight, const Argument& x) {
  if (!weight.defined()) return;
  const int64_t classes = x.tensor.sizes()[class_axis(op, x)];
  if (weight.sizes() != Shape{classes})
    fail<ShapeError>("[{}] weight is {}, but {} classes need ({},).", op, weight.sizes(), classes, classes);
  check_same_dtype(op, {x, {"weight", weight}});
}

/// Checks that the labels of x have its sizes without the axis of the classes, and returns them as int64.
Tensor checked_labels(const char* op, const Argument& x, const Tensor& target) {
  Shape expected = x.tensor.sizes();
  expected.erase(class_axis(op, x));
  const Tensor labels = as_int64(op, {"target", target});
  if (labels.sizes() != expected)
    fail<ShapeError>("[{}] target is {}, expected {} for {} of {}.", op, target.sizes(), expected, x.name,
                     x.tensor.sizes());
  return labels;
}

/// Reshapes (C) to (1, C, 1, ...).
Tensor per_class(const Tensor& weight, int dims) { return along_axis(weight, 1, dims); }

/// Returns w[target], and 0 where the label is ignored, in target's sizes.
Tensor label_weights(const Tensor& target, const Tensor& weight, int64_t ignore_index, DType dtype) {
  const Tensor ignored = eq(target, ignore_index);
  if (!weight.defined()) return to(logical_not(ignored), dtype);
  const Tensor safe = masked_fill(target, ignored, 0);
  return masked_fill(reshape(index_select(weight, 0, reshape(safe, {safe.numel()})), target.sizes()), ignored, 0);
}

// Cross-entropy

struct CrossEntropyState {
  int64_t ignore_index;
  LossReduction reduction;
  double smoothing;
};

struct CrossEntropyTensors {
  Tensor x, target, weight, lse, norm;
};

kernels::CrossEntropyArgs arguments(const CrossEntropyTensors& t, const CrossEntropyState& s) {
  const int64_t batch = t.x.sizes()[0], classes = t.x.sizes()[1];
  kernels::CrossEntropyArgs a;
  a.x = t.x.tensor_view();
  a.target = t.target.tensor_view();
  a.weight = view_of(t.weight);
  a.lse = t.lse.tensor_view();
  a.norm = t.norm.tensor_view();
  a.batch = batch;
  a.classes = classes;
  a.spatial = t.lse.numel() / 2 / std::max<int64_t>(1, batch);
  a.ignore_index = s.ignore_index;
  a.smoothing = s.smoothing;
  a.reduction = s.reduction;
  return a;
}

/// Returns g divided by the reduction's divisor, broadcastable over x (B, C, ...).
Tensor sample_scale(const Tensor& g, const CrossEntropyTensors& t, const CrossEntropyState& s) {
  if (s.reduction == LossReduction::none) return unsqueeze(g, 1);
  // First gradients of a mean over nothing are empty, but second ones would show its division by 0.
  if (s.reduction != LossReduction::mean || t.x.numel() == 0) return g;
  return div(g, to(t.norm, g.dtype()));
}

/// Computes the sum of a sample's coefficients (see the contract), (B, 1, ...).
Tensor coefficient_sum(const CrossEntropyTensors& t, const CrossEntropyState& s) {
  const int dims = t.x.dim();
  const double classes = static_cast<double>(t.x.sizes()[1]);
  if (t.target.dtype() != kInt64) {
    const Tensor q = add(mul(t.target, 1.0 - s.smoothing), s.smoothing / classes);
    return sum(t.weight.defined() ? mul(q, per_class(t.weight, dims)) : q, {1}, true);
  }
  Tensor hit = mul(label_weights(t.target, t.weight, s.ignore_index, t.x.dtype()), 1.0 - s.smoothing);
  if (s.smoothing != 0.0) {
    const Tensor kept = label_weights(t.target, {}, s.ignore_index, t.x.dtype());
    hit = add(hit, t.weight.defined() ? mul(kept, mul(sum(t.weight), s.smoothing / classes)) : mul(kept, s.smoothing));
  }
  return unsqueeze(hit, 1);
}

Tensor cross_entropy_backward(const Tensor& g, const CrossEntropyTensors& t, const CrossEntropyState& s);

Grads second_gradients(Context& k, const Tensor& dv) {
  const CrossEntropyTensors t{widened(k.saved(1)), widened(k.saved(2)), widened(k.saved(3)), k.saved(4), k.saved(5)};
  const CrossEntropyState& s = k.get<CrossEntropyState>();
  const Tensor v = widened(dv), g = widened(k.saved(0));
  Grads grads(3);
  if (k.needs(0)) {
    const Tensor unit = mul(v, cross_entropy_backward(ones(g.sizes(), like(g)), t, s));
    grads[0] = s.reduction == LossReduction::none ? sum(unit, {1}) : sum(unit);
  }
  if (k.needs(1) || k.needs(2)) {
    const Tensor p = softmax(t.x, 1), along = sum(mul(v, p), {1}, true), scale = sample_scale(g, t, s);
    if (k.needs(1)) {
      Tensor factor = mul(scale, coefficient_sum(t, s));
      // If every label is ignored, the mean divides by 0; ignored samples still have no gradient.
      if (t.target.dtype() == kInt64) factor = masked_fill(factor, unsqueeze(eq(t.target, s.ignore_index), 1), 0);
      grads[1] = mul(factor, mul(p, sub(v, along)));
    }
    if (k.needs(2)) {
      const Tensor slope = mul(mul(sub(along, v), scale), 1.0 - s.smoothing);
      grads[2] = t.weight.defined() ? mul(slope, per_class(t.weight, t.x.dim())) : slope;
    }
  }
  for (Tensor& d : grads) d = rounded(d, dv.dtype());
  return grads;
}

/// Computes dx of cross_entropy; an operation itself, so that it can be differentiated again.
Tensor cross_entropy_backward(const Tensor& g, const CrossEntropyTensors& t, const CrossEntropyState& s) {
  const Tensor upstream = dense(g);
  const CrossEntropyTensors p{dense(t.x), dense(t.target), dense(t.weight), t.lse, t.norm};
  Tensor dx = empty(t.x.sizes(), like(t.x));
  kernels::CrossEntropyArgs args = arguments(p, s);
  args.g = upstream.tensor_view();
  args.dx = dx.tensor_view();
  launch(kernels::cross_entropy_backward, dx.device(), args);
  if (Context* c = record("cross_entropy_backward", dx, {g, t.x, t.target}, second_gradients))
    c->save(g, t.x, t.target, t.weight, t.lse, t.norm).set(s);
  return dx;
}

Grads first_gradients(Context& k, const Tensor& g) {
  const CrossEntropyTensors t{k.saved(0), k.saved(1), k.saved(2), k.saved(3), k.saved(4)};
  const CrossEntropyState& s = k.get<CrossEntropyState>();
  Grads grads(2);
  if (k.needs(0)) grads[0] = cross_entropy_backward(g, t, s);
  if (k.needs(1)) {
    const Tensor scale = sample_scale(widened(g), t, s), weight = widened(t.weight);
    const Tensor slope = mul(mul(log_softmax(widened(t.x), 1), scale), s.smoothing - 1.0);
    grads[1] = rounded(weight.defined() ? mul(slope, per_class(weight, t.x.dim())) : slope, t.x.dtype());
  }
  return grads;
}

Tensor fused_cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options) {
  Shape samples = x.sizes();
  samples.erase(1);
  const CrossEntropyState s{options.ignore_index, kernel_reduction(options.reduction), options.label_smoothing};
  Shape sums = samples;  // each value is stored in two parts
  sums.insert(0, 2);
  const CrossEntropyTensors t{dense(x), dense(target), dense(options.weight),
                              empty(sums, {.dtype = kFloat64, .device = x.device()}),
                              empty({}, {.dtype = kFloat64, .device = x.device()})};
  Tensor loss = empty(options.reduction == Reduction::none ? samples : Shape{}, like(x));
  kernels::CrossEntropyArgs args = arguments(t, s);
  args.out = loss.tensor_view();
  launch(kernels::cross_entropy, x.device(), args);
  if (Context* c = record("cross_entropy", loss, {x, target}, first_gradients))
    c->save(x, target, t.weight, t.lse, t.norm).set(s);
  return loss;
}

// Binary cross-entropy

struct BceState {
  LossReduction reduction;
  bool number;    ///< the target is one number, not a tensor
  double target;
};

/// Returns d loss / d result of each element, to be multiplied by g.
double bce_scale(const BceState& s, int64_t numel) {
  return s.reduction == LossReduction::mean ? 1.0 / static_cast<double>(numel) : 1.0;
}

kernels::BceArgs bce_arguments(const Tensor& x, const Tensor& target, const BceState& s) {
  kernels::BceArgs a;
  a.x = x.tensor_view();
  a.target = s.number ? TensorView::number(s.target, statistics_type(x)) : target.tensor_view();
  a.reduction = s.reduction;
  return a;
}

Tensor bce_backward(const Tensor& g, const Tensor& x, const Tensor& target, const BceState& s) {
  const Tensor upstream = dense(g), source = dense(x), truth = dense(target);
  Tensor dx = empty(x.sizes(), like(x));
  kernels::BceArgs args = bce_arguments(source, truth, s);
  args.g = upstream.tensor_view();
  args.dx = dx.tensor_view();
  launch(kernels::bce_with_logits_backward, x.device(), args);
  if (Context* c = record("bce_with_logits_backward", dx, {g, x, target}, [](Context& k, const Tensor& v) -> Grads {
        const Tensor g1 = widened(k.saved(0)), x1 = widened(k.saved(1)), target1 = widened(k.saved(2));
        const BceState& state = k.get<BceState>();
        const Tensor p = sigmoid(x1), scaled = mul(widened(v), bce_scale(state, x1.numel()));
        Grads grads(3);
        if (k.needs(0)) {
          const Tensor product = mul(scaled, state.number ? sub(p, state.target) : sub(p, target1));
          grads[0] = state.reduction == LossReduction::none ? product : sum(product);
        }
        if (k.needs(1)) grads[1] = mul(mul(scaled, g1), mul(p, rsub(p, 1)));
        if (k.needs(2)) grads[2] = neg(mul(scaled, g1));
        for (Tensor& d : grads) d = rounded(d, v.dtype());
        return grads;
      }))
    c->save(g, x, target).set(s);
  return dx;
}

Tensor fused_bce(const Tensor& x, const Tensor& target, const BceState& s) {
  const Tensor source = dense(x), truth = dense(target);
  Tensor loss = empty(s.reduction == LossReduction::none ? x.sizes() : Shape{}, like(x));
  kernels::BceArgs args = bce_arguments(source, truth, s);
  args.out = loss.tensor_view();
  launch(kernels::bce_with_logits, x.device(), args);
  if (Context* c = record("bce_with_logits", loss, {x, target}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor x1 = k.saved(0);
        const BceState& state = k.get<BceState>();
        const auto of_target = [&] { return mul(mul(widened(x1), widened(g)), -bce_scale(state, x1.numel())); };
        return {k.needs(0) ? bce_backward(g, x1, k.saved(1), state) : Tensor(),
                k.needs(1) ? to(of_target(), x1.dtype()) : Tensor()};
      }))
    c->save(x, target).set(s);
  return loss;
}

BceOptions in_float32(const BceOptions& options) {
  return {widened(options.weight), widened(options.pos_weight), options.reduction};
}

/// True if bce has to go through float32; a composition would round at every step.
bool bce_needs_float32(const Tensor& logits, const BceOptions& options) {
  const bool composes = options.weight.defined() || options.pos_weight.defined();
  return needs_float32(kernels::bce_with_logits, logits) || (composes && is_16_bit(logits));
}

/// Computes -(pos_weight t log sigmoid(x) + (1 - t) log sigmoid(-x)), times weight. The gradient of each part keeps its
/// digits: with (1 - t) x taken out of the logarithm, 1 - sigmoid(-x) would have none left for x far below 0.
Tensor composed_bce(const Tensor& x, const Tensor& target, const BceOptions& options) {
  const Tensor positive = options.pos_weight.defined() ? mul(options.pos_weight, target) : target;
  Tensor loss = neg(add(mul(logsigmoid(x), positive), mul(logsigmoid(neg(x)), rsub(target, 1))));
  if (options.weight.defined()) loss = mul(loss, options.weight);
  return reduced(loss, options.reduction);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  LEVIN_AUTOCAST(float32, cross_entropy, logits, target, options);
  check_floating("cross_entropy", logits, "logits");
  if (needs_float32(kernels::cross_entropy, logits)) {
    CrossEntropyOptions wide = options;
    wide.weight = widened(options.weight);
    return to(cross_entropy(to(logits, kFloat32), widened(target), wide), logits.dtype());
  }
  if (options.label_smoothing < 0.0 || options.label_smoothing > 1.0)
    fail<ValueError>("[cross_entropy] label_smoothing is {}, but has to lie in [0, 1].", options.label_smoothing);
  const bool probabilities = target.is_floating() && logits.dim() > 0 && target.sizes() == logits.sizes();
  const Tensor truth =
      probabilities ? to(target, logits.dtype()) : checked_labels("cross_entropy", {"logits", logits}, target);
  check_weight("cross_entropy", options.weight, {"logits", logits});
  if (logits.dim() > 1) return fused_cross_entropy(logits, truth, options);
  const Tensor loss = fused_cross_entropy(unsqueeze(logits, 0), unsqueeze(truth, 0), options);
  return reshape(loss, {});
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const NllOptions& options) {
  LEVIN_AUTOCAST(float32, nll_loss, log_probabilities, target, options);
  check_floating("nll_loss", log_probabilities, "log_probabilities");
  if (is_16_bit(log_probabilities)) {  // the sum of the weights would overflow in float16
    NllOptions wide = options;
    wide.weight = widened(options.weight);
    return to(nll_loss(widened(log_probabilities), target, wide), log_probabilities.dtype());
  }
  const Tensor labels = contiguous(checked_labels("nll_loss", {"log_probabilities", log_probabilities}, target));
  check_weight("nll_loss", options.weight, {"log_probabilities", log_probabilities});
  if (log_probabilities.dim() == 1)
    return reshape(nll_loss(unsqueeze(log_probabilities, 0), unsqueeze(labels, 0), options), {});
  launch(kernels::check_labels, labels.device(),
         {labels.tensor_view(), log_probabilities.sizes()[1], options.ignore_index, "nll_loss"});
  const Tensor ignored = eq(labels, options.ignore_index), safe = masked_fill(labels, ignored, 0);
  const Tensor weights = label_weights(labels, options.weight, options.ignore_index, log_probabilities.dtype());
  const Tensor picked = squeeze(gather(log_probabilities, 1, unsqueeze(safe, 1)), 1);
  const Tensor loss = masked_fill(neg(mul(picked, weights)), ignored, 0);
  if (options.reduction != Reduction::mean) return reduced(loss, options.reduction);
  // Without a sample the mean is NaN, as in PyTorch, but all gradients are 0; the division by 0 would make them NaN.
  return masked_fill(div(sum(loss), sum(weights)), all(ignored), std::numeric_limits<double>::quiet_NaN());
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options) {
  LEVIN_AUTOCAST(float32, bce_with_logits, logits, target, options);
  check_floating("bce_with_logits", logits);
  if (target.sizes() != logits.sizes())
    fail<ShapeError>("[bce_with_logits] target is {}, logits are {}: they have to be of one size.", target.sizes(),
                     logits.sizes());
  if (bce_needs_float32(logits, options))
    return to(bce_with_logits(to(logits, kFloat32), to(target, kFloat32), in_float32(options)), logits.dtype());
  if (options.weight.defined() || options.pos_weight.defined())
    return composed_bce(logits, to(target, logits.dtype()), options);
  return fused_bce(logits, to(target, logits.dtype()), {kernel_reduction(options.reduction), false, 0.0});
}

Tensor bce_with_logits(const Tensor& logits, const Scalar& target, const BceOptions& options) {
  LEVIN_AUTOCAST(float32, bce_with_logits, logits, target, options);
  check_floating("bce_with_logits", logits);
  if (bce_needs_float32(logits, options))
    return to(bce_with_logits(to(logits, kFloat32), target, in_float32(options)), logits.dtype());
  if (options.weight.defined() || options.pos_weight.defined())
    return composed_bce(logits, full({}, target.to<double>(), like(logits)), options);
  return fused_bce(logits, {}, {kernel_reduction(options.reduction), true, target.to<double>()});
}

}  // namespace levin
