#pragma once
// Ranking metrics. They keep all samples, so ties and any division into batches are handled exactly.

#include <levin/trainer/metrics/classification.h>

namespace levin::metrics {

/// Options of AUROC and AveragePrecision, with torchmetrics' names.
struct RankingOptions {
  Task task = Task::binary;                    ///< kind of the inputs
  std::int64_t num_classes = 0;                ///< multiclass: required, 2 or more
  Average average = Average::macro;            ///< multiclass: macro (over all classes), weighted or none
  std::optional<double> max_fpr{};             ///< AUROC, binary: partial area up to this false-positive rate (McClish)
  std::optional<std::int64_t> ignore_index{};  ///< targets of this value are ignored
};

/// Binary: preds (...) floating-point and target (...) int64 of 0 and 1. Multiclass: preds (N, C, ...), target (N,
/// ...), one class against the rest; if any score lies outside [0, 1] all are treated as logits and go through softmax
/// first. compute() throws ValueError without samples and for NaN scores.
class Ranking : public Metric {
 protected:
  /// `name` is the prefix of error messages. Throws ValueError for options out of range and for the average micro.
  Ranking(const char* name, const RankingOptions& options);

  /// For each distinct score, in descending order: the number of positive (tp) and negative samples (fp) with at least
  /// that score.
  struct Curve {
    std::vector<std::int64_t> tp, fp;
    /// Number of all positive, or of all negative, samples.
    std::int64_t positives() const { return tp.empty() ? 0 : tp.back(); }
    std::int64_t negatives() const { return fp.empty() ? 0 : fp.back(); }
  };
  /// Returns the value of one class.
  virtual double area(const Curve& curve) const = 0;

  RankingOptions options_;

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  Tensor classes_result(std::vector<double> scores, const std::vector<std::int64_t>& target) const;
};

/// Area under the ROC curve (true- over false-positive rate) by the trapezoidal rule. 0 with a warning for a class
/// without positives or without negatives, as in torchmetrics.
class AUROC : public Ranking {
 public:
  /// Also throws ValueError for max_fpr outside (0, 1] or in multiclass.
  explicit AUROC(const RankingOptions& options = {});

 private:
  double area(const Curve& curve) const override;
};

/// Sum over the thresholds of precision times the gain in recall. Without positives 0 for binary; in multiclass NaN and
/// left out of averages, as in torchmetrics.
class AveragePrecision : public Ranking {
 public:
  explicit AveragePrecision(const RankingOptions& options = {}) : Ranking("AveragePrecision", options) {}

 private:
  double area(const Curve& curve) const override;
};

}  // namespace levin::metrics
