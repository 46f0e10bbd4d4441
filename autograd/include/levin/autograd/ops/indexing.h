#pragma once
// Moving elements by position, sorting.

#include <levin/autograd/ops/reduce.h>
#include <levin/core/tensor.h>

namespace levin {

Tensor cat(std::span<const Tensor> tensors, int64_t axis = 0);
Tensor cat(std::initializer_list<Tensor> tensors, int64_t axis = 0);
Tensor stack(std::span<const Tensor> tensors, int64_t axis = 0);
Tensor stack(std::initializer_list<Tensor> tensors, int64_t axis = 0);
/// out[i][j] = x[index[i][j]][j] for axis 0, and so on; index is int64 and at most as large as x elsewhere.
Tensor gather(const Tensor& x, int64_t axis, const Tensor& index);
/// A copy of x to which source is added at index along axis; repeated places add up in a fixed order.
Tensor scatter_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
/// A copy of x with source's values written at index along axis (the last write of a repeated place stays).
Tensor scatter(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
/// Rows (slices along axis) in the order of a one-dimensional int64 index.
Tensor index_select(const Tensor& x, int64_t axis, const Tensor& index);
/// A copy of x to whose slices index[i] along axis source's slice i is added, in a fixed order.
Tensor index_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
/// Elements where mask is true, one-dimensional.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// Indices of the elements that are not zero, (n, dim) int64.
Tensor nonzero(const Tensor& x);

/// Rows of weight (V, C) by index (...): (..., C). The gradient of row padding_idx is zero.
Tensor embedding(const Tensor& weight, const Tensor& index, std::optional<int64_t> padding_idx = std::nullopt);

/// Stable sort along an axis.
ValuesIndices sort(const Tensor& x, int64_t axis = -1, bool descending = false);
Tensor argsort(const Tensor& x, int64_t axis = -1, bool descending = false);
/// The k largest (smallest) along an axis, in order; ties by lower index.
ValuesIndices topk(const Tensor& x, int64_t k, int64_t axis = -1, bool largest = true);

/// Lower (upper) triangle of the last two axes; diagonal k as in NumPy.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);
/// (..., num_classes) int64; -1 takes the largest class plus one.
Tensor one_hot(const Tensor& index, int64_t num_classes = -1);
Tensor flip(const Tensor& x, const Shape& axes);
/// Zero (or `value`) padding; pairs (before, after) from the last axis backwards, as PyTorch's F.pad.
Tensor pad(const Tensor& x, const Shape& pads, const Scalar& value = 0);

}  // namespace levin
