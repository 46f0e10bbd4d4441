#pragma once
// Predictions and targets of classifiers as flat lists of classes, whatever form they came in.

#include <levin/trainer/metrics/classification.h>

namespace levin::metrics {

struct LabelRules {
  const char* name;
  Task task;
  double threshold;
  std::int64_t num_classes;
  std::int64_t top_k;
  std::optional<std::int64_t> ignore_index;
};

/// Throws ValueError for options that make no sense.
void check_rules(const LabelRules& rules);

struct Labels {
  Tensor preds;   ///< (n) int64; 0 where ignored
  Tensor target;  ///< (n) int64; 0 where ignored
  Tensor valid;   ///< (n) int64: 1, or 0 where the target is ignored
};

/// Multiclass. With top_k > 1 a target among the k highest scores is its own prediction.
Labels class_labels(const LabelRules& rules, const Tensor& preds, const Tensor& target);

/// Binary. (2, 4) int64: true negatives, false positives, false negatives, true positives; in the first row for scores
/// that are probabilities, in the second for logits.
Tensor binary_counts(const LabelRules& rules, const Tensor& preds, const Tensor& target);
/// 1 (int64) if a score lies outside of [0, 1], so that all are logits.
Tensor has_logits(const Tensor& preds);
/// The row of gathered binary_counts that holds, as four int64.
std::vector<std::int64_t> decide_counts(const Tensor& counts, const Tensor& logits);

/// (classes) int64: how often each occurs among `labels` (n), where each counts `weight` (n).
Tensor count_classes(std::int64_t classes, const Tensor& labels, const Tensor& weight);

/// Throws where targets are no int64 classes below `classes`; values are looked at on the CPU only.
void check_targets(const char* name, const Tensor& target, std::int64_t classes,
                   const std::optional<std::int64_t>& ignore_index);

}  // namespace levin::metrics
