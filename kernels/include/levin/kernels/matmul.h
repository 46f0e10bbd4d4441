#pragma once
// Contract of the matrix product.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes out[i] = alpha * a[i] b[i] + beta * out[i] + bias for every index i of the leading axes. out (..., M, N) is
/// contiguous; a (..., M, K) and b (..., K, N) have any strides, and their leading axes are already broadcast to out's
/// (stride 0); bias (N) is contiguous, or absent (null pointer). All have one dtype; 16-bit floats accumulate in float.
/// out overlaps no input. Bytes: one pass over a, b and out; flops: 2 M N K per index.
struct MatmulArgs {
  TensorView out, a, b, bias;
  double alpha = 1.0, beta = 0.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    const double k = static_cast<double>(a.size(a.dim() - 1));
    return {bytes(a, b, bias) + bytes(out) * (beta != 0 ? 2 : 1), 2 * k * count(out), a.dtype};
  }
};
extern constinit Kernel<void(const MatmulArgs&, Stream&)> matmul;

}  // namespace levin::kernels
