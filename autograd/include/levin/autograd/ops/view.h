#pragma once
// Views: other shapes and strides on the same memory. Tensor's members of the same names call these functions.

#include <levin/core/tensor.h>

namespace levin {

/// Returns the elements in row-major order with these sizes, one of which may be -1; copies when a view is not
/// possible.
Tensor reshape(const Tensor& x, const Shape& sizes);
/// As reshape, but throws ShapeError when a view is not possible.
Tensor view(const Tensor& x, const Shape& sizes);
/// Joins the axes from start to end; copies when a view is not possible.
Tensor flatten(const Tensor& x, int64_t start = 0, int64_t end = -1);
/// Exchanges two axes.
Tensor transpose(const Tensor& x, int64_t a, int64_t b);
/// Transposes a matrix, and returns a tensor of fewer dimensions itself; ShapeError for more.
Tensor t(const Tensor& x);
/// Returns a view whose axis i is axes[i] of x; each axis is named once.
Tensor permute(const Tensor& x, const Shape& axes);
/// Returns the elements start to start + length - 1 along an axis. Throws IndexError if they are not in x.
Tensor narrow(const Tensor& x, int64_t axis, int64_t start, int64_t length);
/// Returns the elements start:stop:step along an axis, as Python does.
Tensor slice(const Tensor& x, int64_t axis, const Slice& slice);
/// Returns one element of an axis, which is removed. Throws IndexError outside of [-size, size).
Tensor select(const Tensor& x, int64_t axis, int64_t index);
/// Repeats axes of size 1 without a copy, to which axes may be added in front; -1 keeps a size. Throws ShapeError.
Tensor expand(const Tensor& x, const Shape& sizes);
/// Removes all axes of size 1, or this one if its size is 1.
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, int64_t axis);
/// Adds an axis of size 1 before `axis`, which may also be x.dim().
Tensor unsqueeze(const Tensor& x, int64_t axis);
/// Returns all windows of `size` along an axis, `step` apart; the windows become a new last axis.
Tensor unfold(const Tensor& x, int64_t axis, int64_t size, int64_t step);
/// Returns a view with any sizes and strides of x's memory; the gradients of elements that are read several times are
/// summed. Negative strides are refused.
Tensor as_strided(const Tensor& x, const Shape& sizes, const Shape& strides,
                  std::optional<int64_t> offset = std::nullopt);
/// Divides x along an axis into `chunks` parts of equal size; the last one may be smaller, and parts may be missing.
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t axis = 0);
/// Divides x along an axis into parts of this size, the last of which may be smaller, or of these sizes.
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t axis = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t axis = 0);
/// Returns the elements of an axis, which is removed.
std::vector<Tensor> unbind(const Tensor& x, int64_t axis = 0);
/// Returns x without its place in the graph, on the same memory.
Tensor detach(const Tensor& x);

}  // namespace levin
