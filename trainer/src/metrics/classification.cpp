#include <levin/trainer/metrics/classification.h>

#include <levin/autograd/ops.h>

#include "src/metrics/labels.h"

namespace levin::metrics {
namespace {

LabelRules rules_of(const char* name, const StatScoresOptions& o) {
  return {name, o.task, o.threshold, o.num_classes, o.top_k, o.ignore_index};
}

LabelRules rules_of(const char* name, const ConfusionMatrixOptions& o) {
  return {name, o.task, o.threshold, o.num_classes, 1, o.ignore_index};
}

Tensor counters(const Shape& sizes) { return zeros(sizes, {.dtype = kInt64}); }

}  // namespace

StatScores::StatScores(const char* name, const StatScoresOptions& options) : Metric(name), options_(options) {
  check_rules(rules_of(name, options));
  if (options.task == Task::binary) {
    add_state("counts", counters({2, 4}));
    add_state("logits", counters({}), StateReduce::max);
  } else {
    for (const char* state : {"tp", "predicted", "targets"}) add_state(state, counters({options.num_classes}));
  }
}

void StatScores::add(const Tensor& preds, const Tensor& target) {
  const LabelRules rules = rules_of(name(), options_);
  if (options_.task == Task::binary) {
    gather("counts", binary_counts(rules, preds, target));
    if (preds.numel() > 0) gather("logits", has_logits(preds));
    return;
  }
  const Labels l = class_labels(rules, preds, target);
  const auto classes = options_.num_classes;
  gather("tp", count_classes(classes, l.target, l.valid * l.preds.eq(l.target).to(kInt64)));
  gather("predicted", count_classes(classes, l.preds, l.valid));
  gather("targets", count_classes(classes, l.target, l.valid));
}

std::vector<StatScores::Counts> StatScores::counts() const {
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  if (options_.task == Task::binary) {
    const auto c = decide_counts(state("counts"), state("logits"));
    return {{.tp = number(c[3]), .fp = number(c[1]), .tn = number(c[0]), .fn = number(c[2])}};
  }
  const auto tp = state("tp").to_vector<double>(), predicted = state("predicted").to_vector<double>(),
             targets = state("targets").to_vector<double>();
  double all = 0;
  for (const double n : targets) all += n;
  std::vector<Counts> out(tp.size());
  for (std::size_t i = 0; i < tp.size(); ++i)
    out[i] = {.tp = tp[i],
              .fp = predicted[i] - tp[i],
              .tn = all - predicted[i] - targets[i] + tp[i],
              .fn = targets[i] - tp[i]};
  return out;
}

template <class F>
Tensor StatScores::averaged(bool by_target, const F& score) const {
  return average_of(counts(), by_target, score);
}

template <class F>
Tensor StatScores::average_of(const std::vector<Counts>& classes, bool by_target, const F& score) const {
  if (options_.task == Task::binary) return tensor(score(classes[0]), {.dtype = kFloat64});
  if (options_.average == Average::micro) {
    Counts all;
    for (const auto& c : classes) {
      all.tp += c.tp;
      all.fp += c.fp;
      all.fn += c.fn;
    }
    return tensor(score(all), {.dtype = kFloat64});
  }
  std::vector<double> scores;
  double sum = 0, weights = 0;
  for (const auto& c : classes) {
    const bool occurs = by_target ? c.tp + c.fn > 0 : c.tp + c.fp + c.fn > 0;
    const double weight = options_.average == Average::weighted ? c.tp + c.fn : occurs ? 1 : 0;
    scores.push_back(score(c));
    sum += weight * scores.back();
    weights += weight;
  }
  if (options_.average == Average::none)
    return from_data(scores, {static_cast<std::int64_t>(scores.size())}, {.dtype = kFloat64});
  return tensor(ratio(sum, weights, 0), {.dtype = kFloat64});
}

Tensor Accuracy::result() const {
  const bool binary = options_.task == Task::binary;
  return averaged(options_.top_k > 1, [&](const Counts& c) {
    return binary ? ratio(c.tp + c.tn, c.tp + c.tn + c.fp + c.fn, 0) : ratio(c.tp, c.tp + c.fn, 0);
  });
}

Tensor Precision::result() const {
  return averaged(options_.top_k > 1,
                  [&](const Counts& c) { return ratio(c.tp, c.tp + c.fp, options_.zero_division); });
}

Tensor Recall::result() const {
  return averaged(options_.top_k > 1,
                  [&](const Counts& c) { return ratio(c.tp, c.tp + c.fn, options_.zero_division); });
}

Tensor F1Score::result() const {
  return averaged(false,
                  [&](const Counts& c) { return ratio(2 * c.tp, 2 * c.tp + c.fn + c.fp, options_.zero_division); });
}

JaccardIndex::JaccardIndex(const JaccardIndexOptions& o)
    : StatScores("JaccardIndex", {.task = o.task,
                                  .threshold = o.threshold,
                                  .num_classes = o.num_classes,
                                  .average = o.average,
                                  .ignore_index = o.ignore_index,
                                  .zero_division = o.zero_division}) {}

Tensor JaccardIndex::result() const {
  const auto score = [&](const Counts& c) { return ratio(c.tp, c.tp + c.fp + c.fn, options_.zero_division); };
  if (options_.task == Task::binary || options_.average == Average::none || !options_.ignore_index)
    return averaged(false, score);
  // The ignored class may still be predicted, which counts as an error of the others only.
  auto classes = counts();
  if (const auto i = *options_.ignore_index; i >= 0 && i < options_.num_classes)
    classes.erase(classes.begin() + static_cast<std::ptrdiff_t>(i));
  return average_of(classes, false, score);
}

ConfusionMatrix::ConfusionMatrix(const ConfusionMatrixOptions& options) : Metric("ConfusionMatrix"), options_(options) {
  check_rules(rules_of(name(), options));
  if (options.task == Task::binary) {
    add_state("counts", counters({2, 4}));
    add_state("logits", counters({}), StateReduce::max);
  } else {
    add_state("confmat", counters({options.num_classes, options.num_classes}));
  }
}

void ConfusionMatrix::add(const Tensor& preds, const Tensor& target) {
  const LabelRules rules = rules_of(name(), options_);
  if (options_.task == Task::binary) {
    gather("counts", binary_counts(rules, preds, target));
    if (preds.numel() > 0) gather("logits", has_logits(preds));
    return;
  }
  const auto c = options_.num_classes;
  const Labels l = class_labels(rules, preds, target);
  gather("confmat", count_classes(c * c, l.target * c + l.preds, l.valid).reshape({c, c}));
}

Tensor ConfusionMatrix::result() const {
  Tensor m;
  if (options_.task == Task::binary) {
    m = from_data(decide_counts(state("counts"), state("logits")), {2, 2});
  } else {
    m = state("confmat").cpu();
  }
  if (options_.normalize == Normalize::none) return m;
  m = m.to(kFloat64);
  const Tensor by = options_.normalize == Normalize::by_true   ? sum(m, {1}, true)
                    : options_.normalize == Normalize::by_pred ? sum(m, {0}, true)
                                                               : sum(m);
  return where(by.eq(0).expand_as(m), 0.0, m / by);
}

}  // namespace levin::metrics
