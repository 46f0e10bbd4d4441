#pragma once
// A second stream for page-locked batches, so that they travel to the device while it computes.

#include <levin/core/tensor.h>
#include <levin/kernels/cuda.h>

#include <optional>
#include <span>

namespace levin::detail {

/// The device's copy stream, made at its first use.
cuda::Stream copy_stream_of(int device);

/// While it lives, this thread's work for a CUDA device goes to that device's copy stream, provided that all tensors
/// given are page-locked; otherwise it does nothing.
class CopyStream {
 public:
  CopyStream(std::span<const Tensor> from, Device to);
  /// Makes the stream that was current before wait for the copies, so that it may use them.
  void finish(std::span<const Tensor> copied) const;

 private:
  std::optional<cuda::Stream> before_, copies_;
  std::optional<cuda::StreamGuard> guard_;
};

}  // namespace levin::detail
