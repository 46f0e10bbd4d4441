#pragma once
// A data loader's unit: a few tensors that belong together, usually inputs and targets.

#include <levin/core/tensor.h>

#include <span>
#include <tuple>
#include <vector>

namespace levin {

/// The tensors of one batch, each with the samples along axis 0. The first two unpack: `auto& [x, y] : loader`; a batch
/// of more is read by index.
struct Batch {
  std::vector<Tensor> tensors{};
  std::vector<int> ends{};  ///< where each part ends in `tensors`: lists of tensors, a combined loader's batches
  int64_t samples = -1;     ///< set where the first tensor's rows do not tell
  int dataloader_idx = 0;   ///< which loader it is from, of those walked in sequence

  /// Throws IndexError that tells how many tensors there are.
  const Tensor& operator[](int i) const;
  Tensor& operator[](int i);
  /// Samples: rows of the first defined tensor, 0 when there is none, 1 for a tensor without dimensions.
  int64_t size() const;
  /// Parts; a plain batch is one.
  int parts() const;
  /// The tensors of one part; throws IndexError.
  Batch part(int i) const;
  /// The same tensors on another device. A page-locked batch is copied to a CUDA device on a stream of its own, beside
  /// the work queued before; what is queued later on this thread's stream waits for it. Until then the source must not
  /// be written to.
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
