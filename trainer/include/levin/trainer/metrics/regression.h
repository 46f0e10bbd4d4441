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
  /// Takes the handling of NaN values.
  explicit MeanMetric(NanStrategy nan_strategy = NanStrategy::warn);
  using Metric::update;
  /// Adds values with weight 1; update(value, weight) with a weight that has their sizes or is 0-dim.
  void update(const Tensor& value) { Metric::update(value, {}); }
  void update(double value, double weight = 1);

 private:
  void add(const Tensor& value, const Tensor& weight) override;
  Tensor result() const override;
  NanStrategy nan_strategy_;
};

/// Options of MeanSquaredError and MeanAbsoluteError.
struct ErrorOptions {
  std::int64_t num_outputs = 1;  ///< 1: one mean over all elements; else one per column of (N, num_outputs)
};

/// Mean of (preds - target)^2, or its square root. Both have the same sizes.
class MeanSquaredError : public Metric {
 public:
  /// With `squared` = false the value is the root. Throws ValueError for num_outputs below 1.
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
  /// Throws ValueError for num_outputs below 1.
  explicit MeanAbsoluteError(const ErrorOptions& options = {});

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  ErrorOptions options_;
};

/// The scores of several outputs: their mean, all of them, or their mean weighted by the variances of the targets.
enum class Multioutput { uniform_average, raw_values, variance_weighted };

/// Options of R2Score, with torchmetrics' names.
struct R2Options {
  std::int64_t adjusted = 0;                               ///< number of independent regressors, for the adjusted score
  Multioutput multioutput = Multioutput::uniform_average;  ///< how several outputs are combined
};

/// 1 - (sum of squared errors) / (sum of squared deviations of the targets from their mean); preds and target (N) or
/// (N, outputs). If all targets are equal it is 1 for exact predictions and 0 otherwise, as in scikit-learn. compute
/// throws ValueError for fewer than two samples.
class R2Score : public Metric {
 public:
  /// Throws ValueError for negative `adjusted`.
  explicit R2Score(const R2Options& options = {});

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  R2Options options_;
};

/// exp of the mean negative log-likelihood: preds (B, T, V) floating-point token scores, to which log_softmax is
/// applied, and target (B, T) int64.
class Perplexity : public Metric {
 public:
  /// Targets of the value `ignore_index` are left out.
  explicit Perplexity(std::optional<std::int64_t> ignore_index = std::nullopt);

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  std::optional<std::int64_t> ignore_index_;
};

}  // namespace levin::metrics
