#include <levin/trainer/metrics/regression.h>

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <cmath>

#include "src/metrics/labels.h"

namespace levin::metrics {
namespace {

Tensor zero(DType dtype) { return zeros({}, {.dtype = dtype}); }

Tensor difference(const Tensor& preds, const Tensor& target) { return preds.to(kFloat64) - target.to(kFloat64); }

/// Sums all elements, or each column of (N, outputs).
Tensor sum_outputs(const Tensor& errors, const ErrorOptions& o) {
  return o.num_outputs == 1 ? sum(errors) : sum(errors, {0});
}

void check_outputs(const char* name, const Tensor& preds, const ErrorOptions& o) {
  if (o.num_outputs == 1 || (preds.dim() == 2 && preds.size(1) == o.num_outputs)) return;
  throw ShapeError(fmt::format("[{}] predictions are {}, but num_outputs is {}. Give (N, {}).", name,
                               to_string(preds.sizes()), o.num_outputs, o.num_outputs));
}

Tensor initial_errors(const ErrorOptions& o) {
  if (o.num_outputs < 1) throw ValueError(fmt::format("[error] num_outputs is {}. Give 1 or more.", o.num_outputs));
  return o.num_outputs == 1 ? zero(kFloat64) : zeros({o.num_outputs}, {.dtype = kFloat64});
}

Tensor rows(const Tensor& preds, const ErrorOptions& o) {
  return tensor(o.num_outputs == 1 ? preds.numel() : preds.size(0), {.device = preds.device()});
}

/// Returns sum / count on the CPU; NaN without samples.
Tensor mean_of(const Tensor& sum, const Tensor& count) { return sum.cpu() / count.cpu().to(kFloat64); }

}  // namespace

MeanMetric::MeanMetric(NanStrategy nan_strategy) : Metric("MeanMetric"), nan_strategy_(nan_strategy) {
  add_state("mean_value", zero(kFloat64));
  add_state("weight", zero(kFloat64));
  add_state("nans", zero(kInt64));
}

void MeanMetric::update(double value, double weight) {
  update(tensor(value, {.dtype = kFloat64}), tensor(weight, {.dtype = kFloat64}));
}

void MeanMetric::add(const Tensor& value, const Tensor& weight) {
  Tensor v = value.detach().to(kFloat64);
  Tensor w = weight.defined() ? weight.detach().to(v.device(), kFloat64) : ones(v.sizes(), like(v));
  if (w.dim() == 0) w = w.expand_as(v);
  require_same_sizes(v, w);
  if (nan_strategy_ != NanStrategy::disable) {
    const Tensor nan = logical_or(isnan(v), isnan(w));
    v = where(nan, 0.0, v);
    w = where(nan, 0.0, w);
    gather("nans", sum(nan.to(kInt64)));
  }
  gather("mean_value", sum(v * w));
  gather("weight", sum(w));
}

Tensor MeanMetric::result() const {
  const auto nans = state("nans").item<std::int64_t>();
  if (nans > 0 && nan_strategy_ == NanStrategy::error)
    throw ValueError(
        fmt::format("[MeanMetric] {} of the values were NaN. Look for their cause, or ignore them by "
                    "NanStrategy::ignore.",
                    nans));
  if (nans > 0 && nan_strategy_ == NanStrategy::warn) warn(fmt::format("{} NaN values were left out.", nans));
  return mean_of(state("mean_value"), state("weight"));
}

MeanSquaredError::MeanSquaredError(bool squared, const ErrorOptions& options)
    : Metric("MeanSquaredError"), squared_(squared), options_(options) {
  add_state("sum_squared_error", initial_errors(options));
  add_state("total", zero(kInt64));
}

void MeanSquaredError::add(const Tensor& preds, const Tensor& target) {
  require_same_sizes(preds, target);
  check_outputs(name(), preds, options_);
  gather("sum_squared_error", sum_outputs(square(difference(preds, target)), options_));
  gather("total", rows(preds, options_));
}

Tensor MeanSquaredError::result() const {
  const Tensor mean = mean_of(state("sum_squared_error"), state("total"));
  return squared_ ? mean : sqrt(mean);
}

MeanAbsoluteError::MeanAbsoluteError(const ErrorOptions& options) : Metric("MeanAbsoluteError"), options_(options) {
  add_state("sum_abs_error", initial_errors(options));
  add_state("total", zero(kInt64));
}

void MeanAbsoluteError::add(const Tensor& preds, const Tensor& target) {
  require_same_sizes(preds, target);
  check_outputs(name(), preds, options_);
  gather("sum_abs_error", sum_outputs(abs(difference(preds, target)), options_));
  gather("total", rows(preds, options_));
}

Tensor MeanAbsoluteError::result() const { return mean_of(state("sum_abs_error"), state("total")); }

R2Score::R2Score(const R2Options& options) : Metric("R2Score"), options_(options) {
  if (options.adjusted < 0)
    throw ValueError(fmt::format("[R2Score] adjusted is {}. Give 0 or more regressors.", options.adjusted));
  for (const char* state : {"sum_squared_target", "sum_target", "residual"}) add_state(state, zero(kFloat64));
  add_state("total", zero(kInt64));
}

void R2Score::add(const Tensor& preds, const Tensor& target) {
  require_same_sizes(preds, target);
  if (preds.dim() < 1 || preds.dim() > 2)
    throw ShapeError(fmt::format("[R2Score] predictions are {}. Give (N) or (N, outputs).", to_string(preds.sizes())));
  const Tensor known = state("residual");
  if (preds.dim() == 2 && known.dim() == 1 && known.size(0) != preds.size(1))
    throw ShapeError(fmt::format("[R2Score] predictions are {}, but there were {} outputs before. Give as many.",
                                 to_string(preds.sizes()), known.size(0)));
  const Tensor y = target.to(kFloat64);
  gather("sum_squared_target", sum(square(y), {0}));
  gather("sum_target", sum(y, {0}));
  gather("residual", sum(square(difference(preds, target)), {0}));
  gather("total", tensor(preds.size(0), {.device = preds.device()}));
}

Tensor R2Score::result() const {
  const auto squares = state("sum_squared_target").to_vector<double>(), sums = state("sum_target").to_vector<double>(),
             residuals = state("residual").to_vector<double>();
  const double n = state("total").item<double>();
  if (n < 2) throw ValueError(fmt::format("[R2Score] there are {} samples. Give two or more.", n));
  std::vector<double> scores;
  double plain = 0, weighted = 0, variance = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    double spread = squares[i] - sums[i] * (sums[i] / n);
    if (spread <= 1e-14 * squares[i]) spread = 0;  // rounding error of equal targets
    scores.push_back(residuals[i] == 0 ? 1 : spread == 0 ? 0 : 1 - residuals[i] / spread);
    plain += scores.back() / static_cast<double>(sums.size());
    weighted += spread * scores.back();
    variance += spread;
  }
  const auto k = static_cast<double>(options_.adjusted);
  const auto adjust = [&](double r2) { return k > 0 && k < n - 1 ? 1 - (1 - r2) * (n - 1) / (n - k - 1) : r2; };
  if (k > 0 && k >= n - 1)
    warn(fmt::format("{} regressors are too many for {} samples: the score is not adjusted.", k, n));
  if (options_.multioutput == Multioutput::raw_values) {
    for (auto& s : scores) s = adjust(s);
    return from_data(scores, {static_cast<std::int64_t>(scores.size())}, {.dtype = kFloat64});
  }
  const bool by_variance = options_.multioutput == Multioutput::variance_weighted && variance > 0;
  return tensor(adjust(by_variance ? weighted / variance : plain), {.dtype = kFloat64});
}

Perplexity::Perplexity(std::optional<std::int64_t> ignore_index) : Metric("Perplexity"), ignore_index_(ignore_index) {
  add_state("total_log_probs", zero(kFloat64));
  add_state("count", zero(kInt64));
}

void Perplexity::add(const Tensor& preds, const Tensor& target) {
  const bool fits =
      preds.dim() == 3 && target.dim() == 2 && preds.size(0) == target.size(0) && preds.size(1) == target.size(1);
  if (!fits || !is_floating(preds.dtype()))
    throw ShapeError(fmt::format("[Perplexity] scores are {} {} and targets {}. Give floating (B, T, V) and (B, T).",
                                 name_of(preds.dtype()), to_string(preds.sizes()), to_string(target.sizes())));
  check_targets(name(), target, preds.size(2), ignore_index_);
  if (target.numel() == 0) return;
  Tensor scores = preds.detach().reshape({-1, preds.size(2)});  // (B T, V)
  if (size_of(scores.dtype()) < 4) scores = scores.to(kFloat32);
  Tensor t = target.to(kInt64).reshape({-1, 1});
  Tensor valid = ones(t.sizes(), like(t));
  if (ignore_index_) {
    valid = ne(t, *ignore_index_).to(kInt64);
    t = t * valid;
  }
  const Tensor found = levin::gather(log_softmax(scores, 1), 1, t).to(kFloat64);
  Metric::gather("total_log_probs", -sum(where(valid.eq(0), 0.0, found)));
  Metric::gather("count", sum(valid));
}

Tensor Perplexity::result() const { return exp(mean_of(state("total_log_probs"), state("count"))); }

}  // namespace levin::metrics
