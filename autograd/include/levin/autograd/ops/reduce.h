#pragma once
// Reductions. An empty list of axes means all axes. Sums run in fixed trees, so the results do not depend on the number
// of threads.

#include <levin/core/tensor.h>

namespace levin {

/// Sums of integers and bool are int64.
Tensor sum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor prod(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Computes the variance with Bessel's `correction`.
Tensor var(const Tensor& x, const Shape& axes = {}, double correction = 1.0, bool keepdim = false);
Tensor std(const Tensor& x, const Shape& axes = {}, double correction = 1.0, bool keepdim = false);
/// Return the largest (smallest) element over axes; ties share the gradient evenly. Empty reductions throw ShapeError.
Tensor amax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);

struct ValuesIndices {
  Tensor values;
  Tensor indices;  ///< int64
};
/// Reduce along one axis. At a tie, the first index is returned, and it alone receives the gradient.
ValuesIndices max(const Tensor& x, int64_t axis, bool keepdim = false);
ValuesIndices min(const Tensor& x, int64_t axis, bool keepdim = false);
Tensor argmax(const Tensor& x, std::optional<int64_t> axis = std::nullopt, bool keepdim = false);
Tensor argmin(const Tensor& x, std::optional<int64_t> axis = std::nullopt, bool keepdim = false);
Tensor any(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Computes the p-norm, (sum |x|^p)^(1/p); p may be infinity.
Tensor norm(const Tensor& x, double p = 2.0, const Shape& axes = {}, bool keepdim = false);
Tensor logsumexp(const Tensor& x, const Shape& axes, bool keepdim = false);
Tensor cumsum(const Tensor& x, int64_t axis);
/// Sums over the axes along which `sizes` was broadcast to x's shape.
Tensor sum_to_size(const Tensor& x, const Shape& sizes);

Tensor softmax(const Tensor& x, int64_t axis);
Tensor log_softmax(const Tensor& x, int64_t axis);

}  // namespace levin
