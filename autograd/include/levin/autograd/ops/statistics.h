#pragma once
// Order statistics, counts, running extremes and other reductions composed of simpler ones.

#include <levin/autograd/ops/reduce.h>
#include <levin/core/tensor.h>

#include <utility>

namespace levin {

/// The results `var` and `mean` of var_mean.
struct VarMean {
  Tensor var, mean;
};
/// Returns var and mean with the same arguments.
VarMean var_mean(const Tensor& x, const Axes& axes = {}, double correction = 1.0, bool keepdim = false);
/// The results `std` and `mean` of std_mean.
struct StdMean {
  Tensor std, mean;
};
/// Returns std and mean with the same arguments.
StdMean std_mean(const Tensor& x, const Axes& axes = {}, double correction = 1.0, bool keepdim = false);
/// The results `min` and `max` of aminmax.
struct MinMax {
  Tensor min, max;
};
/// Returns amin and amax.
MinMax aminmax(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Sums and means of the elements that are not NaN; a mean of nothing is NaN.
Tensor nansum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor nanmean(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Counts the elements that are not zero, int64.
Tensor count_nonzero(const Tensor& x, const Axes& axes = {});
/// p-norm of a - b over all elements.
Tensor dist(const Tensor& a, const Tensor& b, double p = 2.0);

/// The k-th smallest element along an axis, k from 1; NaN counts as the largest.
ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t axis = -1, bool keepdim = false);
/// The middle element of all, or along an axis; the lower one of two; NaN if there is one.
Tensor median(const Tensor& x);
ValuesIndices median(const Tensor& x, int64_t axis, bool keepdim = false);
/// The most frequent element along an axis, the smallest of several; the index of its last occurrence.
ValuesIndices mode(const Tensor& x, int64_t axis = -1, bool keepdim = false);
/// Result of quantile between two elements: an interpolation, the lower or the higher one, their mean, or the nearest.
enum class QuantileMethod { linear, lower, higher, midpoint, nearest };
/// Quantiles q in [0, 1] (a number, or a vector whose axis becomes the first) along an axis, or of all elements.
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> axis = std::nullopt, bool keepdim = false,
                QuantileMethod interpolation = QuantileMethod::linear);
Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> axis = std::nullopt, bool keepdim = false,
                QuantileMethod interpolation = QuantileMethod::linear);

/// The median of the elements that are not NaN; NaN if there are none.
Tensor nanmedian(const Tensor& x);
ValuesIndices nanmedian(const Tensor& x, int64_t axis, bool keepdim = false);
/// Covariances and correlations of the rows of x (variables, observations), or of one variable (observations).
Tensor cov(const Tensor& x, int64_t correction = 1);
Tensor corrcoef(const Tensor& x);

/// Running products along an axis; the type is that of sum.
Tensor cumprod(const Tensor& x, int64_t axis);
/// The largest (smallest) element so far along an axis, and its position; at a tie the last one. A NaN counts as the
/// largest and as the smallest.
ValuesIndices cummax(const Tensor& x, int64_t axis);
ValuesIndices cummin(const Tensor& x, int64_t axis);
/// log(cumsum(exp(x))) without overflow.
Tensor logcumsumexp(const Tensor& x, int64_t axis);
/// Differences of neighbours along an axis, n times.
Tensor diff(const Tensor& x, int64_t n = 1, int64_t axis = -1);
/// Integral by the trapezoidal rule, with samples dx apart or at x.
Tensor trapezoid(const Tensor& y, double dx = 1.0, int64_t axis = -1);
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t axis = -1);
/// The integrals up to each point but the first.
Tensor cumulative_trapezoid(const Tensor& y, double dx = 1.0, int64_t axis = -1);

/// Counts each number from 0 to the largest in the vector x of integers, int64, or sums their weights. The result has
/// at least minlength elements. Throws ShapeError, DTypeError, and ValueError for negative numbers.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);
/// Counts the elements of a floating x in `bins` equal intervals of [min, max], in x's dtype; with min equal to max,
/// the range of x. Elements outside do not count.
Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0.0, double max = 0.0);
/// Index at which each value would be inserted into the sorted last axis, int64; `right` inserts after equal elements.
/// sorted_sequence is a vector, or its leading sizes are those of `values`; the boundaries of bucketize are a vector.
/// Throws ShapeError. The time grows with the logarithm of the sequence's size.
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool right = false);
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);

/// The results of unique and unique_consecutive.
struct Unique {
  Tensor values;   ///< (n), of x's dtype; sorted by unique, in x's order by unique_consecutive
  Tensor inverse;  ///< the index of each of x's elements in values, int64, of x's shape
  Tensor counts;   ///< (n) int64, how often each value occurs
};
/// Returns the different elements of x, which is read as a vector.
Unique unique(const Tensor& x);
/// Removes repetitions of neighbours only.
Unique unique_consecutive(const Tensor& x);

}  // namespace levin
