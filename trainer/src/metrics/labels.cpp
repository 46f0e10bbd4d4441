#include "src/metrics/labels.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

namespace levin::metrics {
namespace {

/// Reshapes (N, C, ...) to (N * ..., C).
Tensor rows_of(const Tensor& scores) {
  if (scores.dim() == 2) return scores;
  const auto c = scores.size(1);
  return scores.reshape({scores.size(0), c, -1}).transpose(1, 2).reshape({-1, c});
}

Tensor int_of(const Tensor& t) { return t.to(kInt64); }

void check_scores(const LabelRules& r, const Tensor& preds, const Tensor& target) {
  bool fits = preds.dim() == target.dim() + 1 && target.dim() > 0 && preds.size(1) == r.num_classes &&
              preds.size(0) == target.size(0);
  for (int i = 1; fits && i < target.dim(); ++i) fits = preds.size(i + 1) == target.size(i);
  if (!fits)
    throw ShapeError(fmt::format("[{}] scores are {} and targets {}; scores of {} classes have one axis more, axis 1.",
                                 r.name, to_string(preds.sizes()), to_string(target.sizes()), r.num_classes));
}

/// Returns the predicted class of each row; a target among the k best is the prediction.
Tensor winners(const LabelRules& r, const Tensor& scores, const Tensor& target) {
  if (r.top_k == 1) return argmax(scores, 1);
  const Tensor best = topk(scores, r.top_k, 1).indices;  // (n, k)
  const Tensor found = any(best.eq(target.unsqueeze(1)), {1});
  return where(found, target, best.select(1, 0));
}

}  // namespace

void check_rules(const LabelRules& r) {
  if (r.task == Task::multiclass && r.num_classes < 2)
    throw ValueError(
        fmt::format("[{}] num_classes is {}. Give the number of classes, 2 or more.", r.name, r.num_classes));
  if (r.task == Task::multiclass && (r.top_k < 1 || r.top_k > r.num_classes))
    throw ValueError(
        fmt::format("[{}] top_k is {} of {} classes. Give 1 to {}.", r.name, r.top_k, r.num_classes, r.num_classes));
  if (r.task == Task::binary && (r.threshold < 0 || r.threshold > 1))
    throw ValueError(fmt::format("[{}] threshold is {}. Give a probability, 0 to 1.", r.name, r.threshold));
}

void check_targets(const char* name, const Tensor& target, std::int64_t classes,
                   const std::optional<std::int64_t>& ignore_index) {
  if (target.dtype() != kInt64 && target.dtype() != kInt32 && target.dtype() != kBool)
    throw DTypeError(fmt::format("[{}] targets are {}. Give int64 or int32 classes.", name, name_of(target.dtype())));
  if (target.device() != kCpu || target.numel() == 0 || target.dtype() == kBool) return;
  Tensor known = target;
  if (ignore_index) known = target.masked_fill(target.eq(*ignore_index), 0);
  const auto low = min(known).item<std::int64_t>(), high = max(known).item<std::int64_t>();
  if (low < 0 || high >= classes)
    throw IndexError(fmt::format("[{}] a target is {}, but there are {} classes. Give 0 to {}, or ignore_index.", name,
                                 low < 0 ? low : high, classes, classes - 1));
}

Labels class_labels(const LabelRules& r, const Tensor& preds, const Tensor& target) {
  check_targets(r.name, target, r.num_classes, r.ignore_index);
  const Tensor t = int_of(target).reshape({-1});
  Labels out{{}, t, ones({t.numel()}, like(t))};
  if (is_floating(preds.dtype())) {
    check_scores(r, preds, target);
    out.preds = t.numel() == 0 ? t : winners(r, rows_of(preds.detach()), t);
  } else {
    if (preds.sizes() != target.sizes())
      throw ShapeError(fmt::format("[{}] predicted classes are {} and targets {}. Give both the same sizes.", r.name,
                                   to_string(preds.sizes()), to_string(target.sizes())));
    if (r.top_k > 1)
      throw ValueError(fmt::format("[{}] top_k is {}, but predictions are classes. Give scores.", r.name, r.top_k));
    check_targets(r.name, preds, r.num_classes, std::nullopt);
    out.preds = int_of(preds).reshape({-1});
  }
  if (r.ignore_index) {
    out.valid = int_of(ne(t, *r.ignore_index));
    out.preds = out.preds * out.valid;
    out.target = t * out.valid;
  }
  return out;
}

Tensor has_logits(const Tensor& preds) {
  if (!is_floating(preds.dtype())) return zeros({}, {.dtype = kInt64, .device = preds.device()});
  return int_of(any(logical_or(lt(preds, 0), gt(preds, 1))));
}

Tensor binary_counts(const LabelRules& r, const Tensor& preds, const Tensor& target) {
  if (preds.sizes() != target.sizes())
    throw ShapeError(fmt::format("[{}] predictions are {} and targets {}. Give both the same sizes.", r.name,
                                 to_string(preds.sizes()), to_string(target.sizes())));
  check_targets(r.name, target, 2, r.ignore_index);
  Tensor t = int_of(target).reshape({-1});
  Tensor valid = ones({t.numel()}, like(t));
  if (r.ignore_index) {
    valid = int_of(ne(t, *r.ignore_index));
    t = t * valid;
  }
  const Tensor p = preds.detach().reshape({-1});
  Tensor hit = p;
  if (is_floating(p.dtype())) {
    hit = stack({gt(p, r.threshold), gt(sigmoid(p), r.threshold)});
  } else {
    check_targets(r.name, preds, 2, std::nullopt);
    hit = stack({p, p});
  }
  hit = int_of(hit);  // (2, n)
  const Tensor tp = sum(hit * (t * valid), {1}), fp = sum(hit * ((1 - t) * valid), {1});
  const Tensor positive = sum(t * valid), negative = sum((1 - t) * valid);
  return stack({negative - fp, fp, positive - tp, tp}, 1);
}

std::vector<std::int64_t> decide_counts(const Tensor& counts, const Tensor& logits) {
  return counts.select(0, logits.item<std::int64_t>()).to_vector<std::int64_t>();
}

Tensor count_classes(std::int64_t classes, const Tensor& labels, const Tensor& weight) {
  return scatter_add(zeros({classes}, like(weight)), 0, labels, weight);
}

}  // namespace levin::metrics
