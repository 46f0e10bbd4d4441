#pragma once
// Reductions. An empty list of axes means all axes; one axis needs no braces: sum(x, 1). Sums run in fixed trees, so
// the results do not depend on the number of threads.

#include <levin/core/tensor.h>

namespace levin {

/// Sums of integers and bool are int64. With a dtype, x is converted to it first, and the result has it.
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor sum(const Tensor& x, const Axes& axes, const ReduceOptions& options);
Tensor sum(const Tensor& x, const DTypeOptions& options);
/// Integers need a dtype: mean(x, {.dtype = kFloat32}). Throws DTypeError.
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Axes& axes, const ReduceOptions& options);
Tensor mean(const Tensor& x, const DTypeOptions& options);
/// Products; the types are as for sum.
Tensor prod(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor prod(const Tensor& x, const Axes& axes, const ReduceOptions& options);
Tensor prod(const Tensor& x, const DTypeOptions& options);
/// Computes the variance with Bessel's `correction`: the sum of squares is divided by n - correction. `true` and
/// `false` are 1 and 0, so var(x, 1, true) and var(x, 1, false, true) are PyTorch's var(x, dim, unbiased, keepdim).
Tensor var(const Tensor& x, const Axes& axes = {}, double correction = 1.0, bool keepdim = false);
Tensor var(const Tensor& x, const Axes& axes, const VarOptions& options);
/// The square root of var, with the same arguments.
Tensor std(const Tensor& x, const Axes& axes = {}, double correction = 1.0, bool keepdim = false);
Tensor std(const Tensor& x, const Axes& axes, const VarOptions& options);
/// Return the largest (smallest) element over axes; ties share the gradient evenly. Empty reductions throw ShapeError.
Tensor amax(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);

/// Elements and where they were found.
struct ValuesIndices {
  Tensor values;   ///< elements, of x's dtype
  Tensor indices;  ///< their positions along the axis, int64
};
/// Reduce along one axis. At a tie, the first index is returned, and it alone receives the gradient.
ValuesIndices max(const Tensor& x, int64_t axis, bool keepdim = false);
ValuesIndices min(const Tensor& x, int64_t axis, bool keepdim = false);
/// Return the positions of the first largest (smallest) element along an axis, or in x as a line; int64.
Tensor argmax(const Tensor& x, std::optional<int64_t> axis = std::nullopt, bool keepdim = false);
Tensor argmin(const Tensor& x, std::optional<int64_t> axis = std::nullopt, bool keepdim = false);
/// Return whether any element, or all of them, are not zero, as NaN is; bool.
Tensor any(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Computes the p-norm, (sum |x|^p)^(1/p); p may be infinity, -infinity and 0, the number of nonzero elements.
Tensor norm(const Tensor& x, double p = 2.0, const Axes& axes = {}, bool keepdim = false);
/// Computes log(sum of exp(x)) without overflow.
Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdim = false);
/// Running sums along an axis; the type is that of sum.
Tensor cumsum(const Tensor& x, int64_t axis);
Tensor cumsum(const Tensor& x, int64_t axis, const DTypeOptions& options);
/// Sums over the axes along which `sizes` was broadcast to x's shape.
Tensor sum_to_size(const Tensor& x, const Shape& sizes);

/// exp(x) / sum of exp(x) along an axis, and its logarithm, both without overflow. With a dtype, x is converted to it
/// first, and the result has it. Throw DTypeError for integers.
Tensor softmax(const Tensor& x, int64_t axis);
Tensor softmax(const Tensor& x, int64_t axis, const DTypeOptions& options);
Tensor log_softmax(const Tensor& x, int64_t axis);
Tensor log_softmax(const Tensor& x, int64_t axis, const DTypeOptions& options);
/// softmax(-x)
Tensor softmin(const Tensor& x, int64_t axis);

}  // namespace levin
