#pragma once
// Converts predictions and targets of classifiers, in all accepted forms, to flat lists of classes.

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

/// Throws ValueError for invalid options.
void check_rules(const LabelRules& rules);

struct Labels {
  Tensor preds;   ///< (n) int64; 0 where ignored
  Tensor target;  ///< (n) int64; 0 where ignored
  Tensor valid;   ///< (n) int64: 1, or 0 where the target is ignored
};

/// Multiclass. With top_k > 1 a target among the k highest scores becomes the prediction.
Labels class_labels(const LabelRules& rules, const Tensor& preds, const Tensor& target);

/// Binary. (2, 4) int64: true negatives, false positives, false negatives, true positives; the first row interprets
/// scores as probabilities, the second as logits.
Tensor binary_counts(const LabelRules& rules, const Tensor& preds, const Tensor& target);
/// 1 (int64) if any score lies outside [0, 1], so that all are logits.
Tensor has_logits(const Tensor& preds);
/// Selects the row of accumulated binary_counts that applies, as four int64.
std::vector<std::int64_t> decide_counts(const Tensor& counts, const Tensor& logits);

/// (classes) int64: weighted count of each class among `labels` (n) with `weight` (n).
Tensor count_classes(std::int64_t classes, const Tensor& labels, const Tensor& weight);

/// Throws unless targets are int64 or int32 classes below `classes`; values are checked on the CPU only.
void check_targets(const char* name, const Tensor& target, std::int64_t classes,
                   const std::optional<std::int64_t>& ignore_index);

}  // namespace levin::metrics
