#pragma once
// Metrics of classifiers that count: right and wrong, by class.

#include <levin/trainer/metrics/metric.h>

#include <optional>

namespace levin::metrics {

enum class Task { binary, multiclass };
/// How the values of the classes become one: micro counts all samples alike, macro is the mean over the classes that
/// occur, weighted weighs them by their number of targets, none gives one value a class.
enum class Average { micro, macro, weighted, none };

struct StatScoresOptions {
  Task task = Task::multiclass;
  double threshold = 0.5;                      ///< binary: above it a probability counts as class 1
  std::int64_t num_classes = 0;                ///< multiclass: needed
  Average average = Average::micro;            ///< multiclass
  std::int64_t top_k = 1;                      ///< multiclass: a target among the k highest scores counts as found
  std::optional<std::int64_t> ignore_index{};  ///< targets of this value count nowhere
  double zero_division = 0;                    ///< the value of 0 / 0; not of Accuracy
};

/// True and false positives and negatives.
///
/// Binary: preds and target of the same sizes; preds are int64 classes or floating probabilities, or logits where any
/// seen so far lies outside of [0, 1] (both readings are counted, so the order of the batches is no matter).
/// Multiclass: preds (N, C, ...) floating scores, whose highest wins, or int64 classes (N, ...); target (N, ...) int64.
/// A target that is no class throws IndexError where reading it costs nothing (on the CPU).
class StatScores : public Metric {
 protected:
  StatScores(const char* name, const StatScoresOptions& options);
  void add(const Tensor& preds, const Tensor& target) override;

  struct Counts {
    double tp = 0, fp = 0, tn = 0, fn = 0;
  };
  /// One entry a class; binary has one, that of class 1.
  std::vector<Counts> counts() const;
  /// Applies `score` by the average that was asked for. In macro a class counts when it occurs among the targets, or
  /// (unless `by_target`) among the predictions.
  template <class F>
  Tensor averaged(bool by_target, const F& score) const;
  static double ratio(double a, double b, double empty) { return b == 0 ? empty : a / b; }

  StatScoresOptions options_;
};

/// Share of targets that were found. (torchmetrics.Accuracy: micro by default)
class Accuracy : public StatScores {
 public:
  explicit Accuracy(const StatScoresOptions& options) : StatScores("Accuracy", options) {}

 private:
  Tensor result() const override;
};

/// TP / (TP + FP)
class Precision : public StatScores {
 public:
  explicit Precision(const StatScoresOptions& options) : StatScores("Precision", options) {}

 private:
  Tensor result() const override;
};

/// TP / (TP + FN)
class Recall : public StatScores {
 public:
  explicit Recall(const StatScoresOptions& options) : StatScores("Recall", options) {}

 private:
  Tensor result() const override;
};

/// 2 TP / (2 TP + FP + FN)
class F1Score : public StatScores {
 public:
  explicit F1Score(const StatScoresOptions& options) : StatScores("F1Score", options) {}

 private:
  Tensor result() const override;
};

/// By what the counts of a confusion matrix are divided: nothing, the targets of a class (rows), the predictions of a
/// class (columns), or all.
enum class Normalize { none, by_true, by_pred, all };

struct ConfusionMatrixOptions {
  Task task = Task::multiclass;
  double threshold = 0.5;
  std::int64_t num_classes = 0;
  std::optional<std::int64_t> ignore_index{};
  Normalize normalize = Normalize::none;
};

/// (C, C): row i, column j counts targets i that were taken for j; (2, 2) for binary. int64, or float64 if normalized
/// (0 / 0 is 0). Inputs as those of StatScores.
class ConfusionMatrix : public Metric {
 public:
  explicit ConfusionMatrix(const ConfusionMatrixOptions& options);

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  ConfusionMatrixOptions options_;
};

}  // namespace levin::metrics
