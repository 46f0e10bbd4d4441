#pragma once
// Regression metrics: means and errors, accumulated in float64.

#include <levin/trainer/metrics/metric.h>

#include <optional>

namespace levin::metrics {

/// Handling of NaN values: `warn` and `ignore` drop them, `error` throws ValueError in compute (updates do not read the
/// data), `disable` keeps them.
enum class NanStrategy { warn, ignore, error, disable };

/// Weighted mean of all values, of any sizes. (torchmetrics.MeanMetric)
class MeanMetric : public Metric {
 public:
  explicit MeanMetric(NanStrategy nan_strategy = NanStrategy::warn);
  using Metric::update;
  /// `weight` has the sizes of `value`, or is a scalar.
  void update(const Tensor& value) { Metric::update(value, {}); }
  void update(double value, double weight = 1);

 private:
  void add(const Tensor& value, const Tensor& weight) override;
  Tensor result() const override;
  NanStrategy nan_strategy_;
};

struct ErrorOptions {
  std::int64_t num_outputs = 1;  ///< 1: one mean over all elements; else one per column of (N, num_outputs)
};

/// Mean of (preds - target)^2, or its square root. Both have the same sizes.
class MeanSquaredError : public Metric {
 public:
  explicit MeanSquaredError(bool squared = true, const ErrorOptions& options = {});

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  bool squared_;
  ErrorOptions options_;
};

/// Mean of |preds - target|. Both have the same sizes.
class MeanAbsoluteError : public Metric {
 public:
  explicit MeanAbsoluteError(const ErrorOptions& options = {});

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  ErrorOptions options_;
};

enum class Multioutput { uniform_average, raw_values, variance_weighted };

struct R2Options {
  std::int64_t adjusted = 0;  ///< number of independent regressors, for the adjusted score
  Multioutput multioutput = Multioutput::uniform_average;
};

/// 1 - (sum of squared errors) / (sum of squared deviations of the targets from their mean); preds and target (N) or
/// (N, outputs). If all targets are equal it is 1 for exact predictions and 0 otherwise, as in scikit-learn. compute
/// throws ValueError for fewer than two samples.
class R2Score : public Metric {
 public:
  explicit R2Score(const R2Options& options = {});

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  R2Options options_;
};

/// exp of the mean negative log-likelihood: preds (B, T, V) token scores, target (B, T) int64.
class Perplexity : public Metric {
 public:
  explicit Perplexity(std::optional<std::int64_t> ignore_index = std::nullopt);

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  std::optional<std::int64_t> ignore_index_;
};

}  // namespace levin::metrics
