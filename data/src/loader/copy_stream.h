#pragma once
// A separate stream for copies of page-locked batches, so that they overlap with computation.

#include <levin/core/tensor.h>
#include <levin/kernels/cuda.h>

#include <optional>
#include <span>

namespace levin::detail {

/// Returns the device's copy stream, created at its first use.
cuda::Stream copy_stream_of(int device);

/// Directs this thread's work for a CUDA device to its copy stream while the object lives, if all tensors given are
/// page-locked; otherwise does nothing.
class CopyStream {
 public:
  CopyStream(std::span<const Tensor> from, Device to);
  /// Makes the previous stream wait for the copies, so that it may use them.
  void finish(std::span<const Tensor> copied) const;

 private:
  std::optional<cuda::Stream> before_, copies_;
  std::optional<cuda::StreamGuard> guard_;
};

}  // namespace levin::detail
