#pragma once
// What a data loader hands out: a few tensors that belong together, usually inputs and targets.

#include <levin/core/tensor.h>

#include <span>
#include <tuple>
#include <vector>

namespace levin {

/// The tensors of one batch, each with the samples along axis 0. The first two unpack: `auto& [x, y] : loader`; a batch
/// of more is read by index.
struct Batch {
  std::vector<Tensor> tensors;

  /// Throws IndexError that tells how many tensors there are.
  const Tensor& operator[](int i) const;
  Tensor& operator[](int i);
  /// Samples: rows of the first tensor, 0 when there is none, 1 for a tensor without dimensions.
  int64_t size() const;
  /// The same tensors on another device.
  Batch to(Device device) const;
};

/// One sample: a batch's tensors without their axis 0.
using Sample = Batch;

template <std::size_t I>
const Tensor& get(const Batch& b) {
  return b[static_cast<int>(I)];
}
template <std::size_t I>
Tensor& get(Batch& b) {
  return b[static_cast<int>(I)];
}
template <std::size_t I>
Tensor&& get(Batch&& b) {
  return std::move(b[static_cast<int>(I)]);
}

namespace data {
using levin::Batch;
using levin::Sample;

/// Stacks samples along a new axis 0; all must have the same number of tensors, shapes and types (ShapeError,
/// DTypeError).
Batch default_collate(std::span<const Sample> samples);
}  // namespace data

}  // namespace levin

template <>
struct std::tuple_size<levin::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, levin::Batch> {
  using type = levin::Tensor;
};
