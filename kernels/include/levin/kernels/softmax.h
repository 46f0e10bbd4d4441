#pragma once
// Contracts of softmax and its logarithm. All tensors are contiguous, f32 or f64, and treated as (outer, n, inner).

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes along n, for `outer` x `inner` lines: out = exp(x - m) / s, or x - m - log s for log_softmax, with m the
/// maximum and s = sum exp(x - m), which accumulates in double if inner is 1. out may be x. Bytes: x and out once;
/// about 25 flops per element.
struct SoftmaxArgs {
  TensorView out, x;
  int64_t outer = 1, n = 1, inner = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), 25 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const SoftmaxArgs&, Stream&)> softmax, log_softmax;

/// With y (outer, n, inner) the output and g its gradient, computes dx = y (g - sum y g) for softmax, g - exp(y) sum g
/// for log_softmax, with sums along n.
/// dx may be g. Bytes: three tensors once; 4 flops per element, about 25 for log_softmax.
struct SoftmaxBackwardArgs {
  TensorView dx, g, y;
  int64_t outer = 1, n = 1, inner = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view kernel) const {
    return {bytes(dx, g, y), count(y) * (kernel == "softmax_backward" ? 4 : 25), y.dtype};
  }
};
extern constinit Kernel<void(const SoftmaxBackwardArgs&, Stream&)> softmax_backward, log_softmax_backward;

}  // namespace levin::kernels
