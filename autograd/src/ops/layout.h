#pragma once
// Memory of results whose axes are not in row-major order. A result that lies in memory like its input saves the next
// operations a copy: attention's heads are axes of a projection (B, T, 3, heads, size), and so are their gradients.

#include "region.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

namespace levin::ops {

/// Returns the strides of dense memory for `sizes` whose axes lie in the order of `strides`; row-major if one of these
/// is 0, since an expanded axis has no place.
inline Shape ordered_strides(const Shape& sizes, const Shape& strides) {
  std::array<int, kMaxDims> axes;
  const std::span<int> order(axes.data(), static_cast<std::size_t>(sizes.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto expanded = [&](int a) { return strides[a] == 0 && sizes[a] > 1; };
  if (std::none_of(order.begin(), order.end(), expanded))
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] > strides[b]; });
  Shape dense = sizes;
  int64_t step = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    dense[*axis] = step;
    step *= std::max<int64_t>(1, sizes[*axis]);
  }
  return dense;
}

/// Returns a new tensor of these sizes whose axes lie in memory in the order of `strides`.
inline Tensor empty_ordered(const Shape& sizes, const Shape& strides, const TensorOptions& options) {
  const Tensor memory = empty(sizes, options);
  return alias(memory, sizes, ordered_strides(sizes, strides), 0);
}

/// Returns the tensor of these sizes whose parts along `axis` are `parts`, if they are neighbours in one memory and do
/// not overlap, or an undefined tensor.
inline Tensor joined_in_place(std::span<const Tensor> parts, const Shape& sizes, int axis) {
  const auto defined = [](const Tensor& t) { return t.defined(); };
  if (parts.size() < 2 || sizes.numel() == 0 || !std::all_of(parts.begin(), parts.end(), defined)) return {};
  const Tensor& first = parts[0];
  Shape strides = first.strides();
  strides[axis] = (parts[1].storage_offset() - first.storage_offset()) / std::max<int64_t>(1, first.size(axis));
  int64_t start = 0;
  for (const Tensor& part : parts) {
    if (!part.shares_storage(first) || part.dtype() != first.dtype()) return {};
    if (part.storage_offset() != first.storage_offset() + start * strides[axis]) return {};
    for (int a = 0; a < sizes.size(); ++a)
      if (part.size(a) > 1 && part.stride(a) != strides[a]) return {};
    start += part.size(axis);
  }
  if (Region{sizes, strides}.may_overlap()) return {};
  return alias(first, sizes, strides, first.storage_offset());
}

}  // namespace levin::ops
