#pragma once
// Classification metrics based on counts of correct and wrong predictions per class.

#include <levin/trainer/metrics/metric.h>

#include <optional>

namespace levin::metrics {

/// Two classes, 0 and 1, or num_classes of them.
enum class Task { binary, multiclass };
/// Averaging over classes: micro counts all samples equally, macro is the mean over the classes that occur, weighted
/// weighs classes by their number of targets, none returns one value per class.
enum class Average { micro, macro, weighted, none };

/// Options of the metrics that count correct and wrong predictions, with torchmetrics' names.
struct StatScoresOptions {
  Task task = Task::multiclass;                ///< kind of the inputs
  double threshold = 0.5;                      ///< binary: probabilities above it count as class 1
  std::int64_t num_classes = 0;                ///< multiclass: required, 2 or more
  Average average = Average::micro;            ///< multiclass: how classes are averaged
  std::int64_t top_k = 1;                      ///< multiclass: a target among the k highest scores counts as correct
  std::optional<std::int64_t> ignore_index{};  ///< targets of this value are ignored
  double zero_division = 0;                    ///< value of 0 / 0; not for Accuracy
};

/// Base class that counts true and false positives and negatives.
///
/// Binary: preds and target have the same sizes; preds are int64 classes or floating-point probabilities, or logits if
/// any value seen so far lies outside [0, 1] (both interpretations are counted, so the order of the batches does not
/// matter). Multiclass: preds (N, C, ...) floating-point scores, whose maximum wins, or int64 classes (N, ...); target
/// (N, ...) int64. A target out of range throws IndexError where the check is free (on the CPU).
class StatScores : public Metric {
 protected:
  /// `name` is the prefix of error messages. Throws ValueError for options out of range.
  StatScores(const char* name, const StatScoresOptions& options);
  void add(const Tensor& preds, const Tensor& target) override;

  /// True and false positives (tp, fp) and negatives (tn, fn) of one class.
  struct Counts {
    double tp = 0, fp = 0, tn = 0, fn = 0;
  };
  /// One entry per class; for binary only that of class 1.
  std::vector<Counts> counts() const;
  /// Applies `score` with the selected averaging. For macro a class counts if it occurs among the targets, or (unless
  /// `by_target`) among the predictions.
  template <class F>
  Tensor averaged(bool by_target, const F& score) const;
  /// The same of these classes.
  template <class F>
  Tensor average_of(const std::vector<Counts>& classes, bool by_target, const F& score) const;
  /// Returns a / b, or `empty` if b is 0.
  static double ratio(double a, double b, double empty) { return b == 0 ? empty : a / b; }

  StatScoresOptions options_;
};

/// Fraction of targets predicted correctly; per class, its recall. (torchmetrics.Accuracy: micro by default)
class Accuracy : public StatScores {
 public:
  explicit Accuracy(const StatScoresOptions& options) : StatScores("Accuracy", options) {}

 private:
  Tensor result() const override;
};

/// TP / (TP + FP): the fraction of predictions that are right. (torchmetrics.Precision)
class Precision : public StatScores {
 public:
  explicit Precision(const StatScoresOptions& options) : StatScores("Precision", options) {}

 private:
  Tensor result() const override;
};

/// TP / (TP + FN): the fraction of targets that are found. (torchmetrics.Recall)
class Recall : public StatScores {
 public:
  explicit Recall(const StatScoresOptions& options) : StatScores("Recall", options) {}

 private:
  Tensor result() const override;
};

/// 2 TP / (2 TP + FP + FN): the harmonic mean of precision and recall. (torchmetrics.F1Score)
class F1Score : public StatScores {
 public:
  explicit F1Score(const StatScoresOptions& options) : StatScores("F1Score", options) {}

 private:
  Tensor result() const override;
};

/// Options of JaccardIndex; task, threshold, num_classes and zero_division as in StatScoresOptions.
struct JaccardIndexOptions {
  Task task = Task::multiclass;
  double threshold = 0.5;
  std::int64_t num_classes = 0;
  Average average = Average::macro;            ///< multiclass; macro is the mean IoU of semantic segmentation
  std::optional<std::int64_t> ignore_index{};  ///< targets of this value are ignored, and so is the class
  double zero_division = 0;
};

/// Intersection over union, TP / (TP + FP + FN). (torchmetrics.JaccardIndex)
class JaccardIndex : public StatScores {
 public:
  explicit JaccardIndex(const JaccardIndexOptions& options);

 private:
  Tensor result() const override;
};

/// Normalization of a confusion matrix: none, over the targets of a class (rows), over the predictions of a class
/// (columns), or over all counts.
enum class Normalize { none, by_true, by_pred, all };

/// Options of ConfusionMatrix; task, threshold, num_classes and ignore_index as in StatScoresOptions, and by what
/// the counts are divided (normalize).
struct ConfusionMatrixOptions {
  Task task = Task::multiclass;
  double threshold = 0.5;
  std::int64_t num_classes = 0;
  std::optional<std::int64_t> ignore_index{};
  Normalize normalize = Normalize::none;
};

/// (C, C): element (i, j) counts targets i predicted as j; (2, 2) for binary. int64, or float64 if normalized (0 / 0 is
/// 0). Takes the same inputs as StatScores.
class ConfusionMatrix : public Metric {
 public:
  explicit ConfusionMatrix(const ConfusionMatrixOptions& options);

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  ConfusionMatrixOptions options_;
};

}  // namespace levin::metrics
