#pragma once
// The batches of a data loader: tensors that belong together, usually inputs and targets.

#include <levin/core/tensor.h>

#include <span>
#include <tuple>
#include <vector>

namespace levin {

/// The tensors of one batch, each with the samples along axis 0. The first two unpack: `auto& [x, y] : loader`; a batch
/// of more is read by index.
struct Batch {
  std::vector<Tensor> tensors{};
  std::vector<int> ends{};  ///< the end of each part in `tensors`, for lists of tensors and combined loaders
  int64_t samples = -1;     ///< the number of samples where it is not that of the first tensor's rows; else -1
  int dataloader_idx = 0;   ///< index of the loader that made it, for loaders read in sequence

  /// Throws IndexError with the number of tensors.
  const Tensor& operator[](int i) const;
  Tensor& operator[](int i);
  /// Number of samples: rows of the first defined tensor, 0 if there is none, 1 for a tensor without dimensions.
  int64_t size() const;
  /// Number of parts; a plain batch has one.
  int parts() const;
  /// The tensors of one part; throws IndexError.
  Batch part(int i) const;
  /// Returns the tensors on another device. A page-locked batch is copied to a CUDA device on a separate stream, beside
  /// the work queued before; work queued later on this thread's stream waits for the copy. Until it is done the source
  /// must not be written to.
  Batch to(Device device) const;
};

/// One sample: the tensors of a batch without their axis 0.
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
