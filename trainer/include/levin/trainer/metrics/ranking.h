#pragma once
// Metrics of how well scores rank: they keep all samples, so equal scores and any cut into batches are handled exactly.

#include <levin/trainer/metrics/classification.h>

namespace levin::metrics {

struct RankingOptions {
  Task task = Task::binary;
  std::int64_t num_classes = 0;                ///< multiclass: needed
  Average average = Average::macro;            ///< multiclass: macro (over all classes), weighted or none
  std::optional<double> max_fpr{};             ///< AUROC, binary: up to this false-positive rate only (McClish)
  std::optional<std::int64_t> ignore_index{};  ///< targets of this value count nowhere
};

/// Binary: preds (...) floating and target (...) int64 of 0 and 1. Multiclass: preds (N, C, ...), target (N, ...), each
/// class against the rest; where any score lies outside of [0, 1] all are logits and go through softmax first.
class Ranking : public Metric {
 protected:
  Ranking(const char* name, const RankingOptions& options);

  /// At each distinct score, from the highest down: how many samples with that score or more are positive and negative.
  struct Curve {
    std::vector<std::int64_t> tp, fp;
    std::int64_t positives() const { return tp.empty() ? 0 : tp.back(); }
    std::int64_t negatives() const { return fp.empty() ? 0 : fp.back(); }
  };
  virtual double area(const Curve& curve) const = 0;

  RankingOptions options_;

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  Tensor classes_result(std::vector<double> scores, const std::vector<std::int64_t>& target) const;
};

/// Area under the curve of true- over false-positive rate, by trapezoids. 0 for a class without positives or without
/// negatives, as torchmetrics has it, with a warning.
class AUROC : public Ranking {
 public:
  explicit AUROC(const RankingOptions& options = {});

 private:
  double area(const Curve& curve) const override;
};

/// Sum over the thresholds of precision times the gain in recall. Without positives 0 for binary; a class without them
/// is NaN and left out of averages, as torchmetrics has it.
class AveragePrecision : public Ranking {
 public:
  explicit AveragePrecision(const RankingOptions& options = {}) : Ranking("AveragePrecision", options) {}

 private:
  double area(const Curve& curve) const override;
};

}  // namespace levin::metrics
