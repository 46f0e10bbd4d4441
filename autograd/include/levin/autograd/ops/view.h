#pragma once
// Views: other shapes and strides on the same memory. Tensor's members of the same names call these functions.

#include <levin/core/tensor.h>

namespace levin {

Tensor reshape(const Tensor& x, const Shape& sizes);
Tensor view(const Tensor& x, const Shape& sizes);
Tensor flatten(const Tensor& x, int64_t start = 0, int64_t end = -1);
Tensor transpose(const Tensor& x, int64_t a, int64_t b);
Tensor t(const Tensor& x);
Tensor permute(const Tensor& x, const Shape& axes);
Tensor narrow(const Tensor& x, int64_t axis, int64_t start, int64_t length);
Tensor slice(const Tensor& x, int64_t axis, const Slice& slice);
Tensor select(const Tensor& x, int64_t axis, int64_t index);
Tensor expand(const Tensor& x, const Shape& sizes);
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, int64_t axis);
Tensor unsqueeze(const Tensor& x, int64_t axis);
/// Returns all windows of `size` along an axis, `step` apart; the windows become a new last axis.
Tensor unfold(const Tensor& x, int64_t axis, int64_t size, int64_t step);
/// Returns a view with any sizes and strides of x's memory; the gradients of elements that are read several times are
/// summed. Negative strides are refused.
Tensor as_strided(const Tensor& x, const Shape& sizes, const Shape& strides,
                  std::optional<int64_t> offset = std::nullopt);
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t axis = 0);
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t axis = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t axis = 0);
std::vector<Tensor> unbind(const Tensor& x, int64_t axis = 0);
Tensor detach(const Tensor& x);

}  // namespace levin
