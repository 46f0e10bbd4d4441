#pragma once
// Order statistics, counts, running extremes and other reductions composed of simpler ones.

#include <levin/autograd/ops/reduce.h>
#include <levin/core/tensor.h>

#include <utility>

namespace levin {

struct VarMean {
  Tensor var, mean;
};
VarMean var_mean(const Tensor& x, const Axes& axes = {}, double correction = 1.0, bool keepdim = false);
struct StdMean {
  Tensor std, mean;
};
StdMean std_mean(const Tensor& x, const Axes& axes = {}, double correction = 1.0, bool keepdim = false);
struct MinMax {
  Tensor min, max;
};
MinMax aminmax(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Ignore NaN; a mean of nothing is NaN.
Tensor nansum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor nanmean(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Counts the elements that are not zero, int64.
Tensor count_nonzero(const Tensor& x, const Axes& axes = {});
/// p-norm of a - b over all elements.
Tensor dist(const Tensor& a, const Tensor& b, double p = 2.0);

/// The k-th smallest element along an axis, k from 1; NaN counts as the largest.
ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t axis = -1, bool keepdim = false);
/// The middle element, the lower one of two; NaN if there is one.
Tensor median(const Tensor& x);
ValuesIndices median(const Tensor& x, int64_t axis, bool keepdim = false);
/// The most frequent element along an axis, the smallest of several; the index of its last occurrence.
ValuesIndices mode(const Tensor& x, int64_t axis = -1, bool keepdim = false);
enum class QuantileMethod { linear, lower, higher, midpoint, nearest };
/// Quantiles q in [0, 1] (a number, or a vector whose axis becomes the first) along an axis, or of all elements.
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> axis = std::nullopt, bool keepdim = false,
                QuantileMethod interpolation = QuantileMethod::linear);
Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> axis = std::nullopt, bool keepdim = false,
                QuantileMethod interpolation = QuantileMethod::linear);

// Scans along an axis. At a tie, cummax and cummin return the last index.
/// The median of the elements that are not NaN; NaN if there are none.
Tensor nanmedian(const Tensor& x);
ValuesIndices nanmedian(const Tensor& x, int64_t axis, bool keepdim = false);
/// Covariances and correlations of the rows of x (variables, observations), or of one variable (observations).
Tensor cov(const Tensor& x, int64_t correction = 1);
Tensor corrcoef(const Tensor& x);

Tensor cumprod(const Tensor& x, int64_t axis);
ValuesIndices cummax(const Tensor& x, int64_t axis);
ValuesIndices cummin(const Tensor& x, int64_t axis);
Tensor logcumsumexp(const Tensor& x, int64_t axis);
/// Differences of neighbours along an axis, n times.
Tensor diff(const Tensor& x, int64_t n = 1, int64_t axis = -1);
/// Integral by the trapezoidal rule, with samples dx apart or at x.
Tensor trapezoid(const Tensor& y, double dx = 1.0, int64_t axis = -1);
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t axis = -1);
/// The integrals up to each point but the first.
Tensor cumulative_trapezoid(const Tensor& y, double dx = 1.0, int64_t axis = -1);

/// Counts each number from 0 to the largest in the vector x of integers, or sums their weights.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);
/// Counts the elements in `bins` equal intervals of [min, max]; with min equal to max, the range of x.
Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0.0, double max = 0.0);
/// Index at which each value would be inserted into the sorted last axis; `right` inserts after equal elements.
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool right = false);
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);

struct Unique {
  Tensor values;   ///< sorted
  Tensor inverse;  ///< the index of each of x's elements in values, of x's shape
  Tensor counts;
};
Unique unique(const Tensor& x);
/// Removes repetitions of neighbours only.
Unique unique_consecutive(const Tensor& x);

}  // namespace levin
