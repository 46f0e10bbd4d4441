#pragma once
// Contract of the matrix product.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes out[i] = alpha * a[i] b[i] + beta * out[i] + bias for every index i of the leading axes. out (..., M, N) is
/// contiguous; a (..., M, K) and b (..., K, N) have any strides, and their leading axes are already broadcast to out's
/// (stride 0); bias (N) is contiguous, or absent (null pointer). All have one dtype; 16-bit floats accumulate in float.
/// out overlaps no input. Bytes: one pass over a, b and out; flops: 2 M N K per index.
/// For several products by one matrix, prepared_b is memory of prepared_matrix_bytes() bytes, 64-byte aligned. The
/// first product, with prepare_b, stores b there in the order in which the others read it; b must not change in
/// between.
struct MatmulArgs {
  TensorView out, a, b, bias;
  double alpha = 1.0, beta = 0.0;
  void* prepared_b = nullptr;
  bool prepare_b = false;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    const double k = static_cast<double>(a.size(a.dim() - 1));
    return {bytes(a, b, bias) + bytes(out) * (beta != 0 ? 2 : 1), 2 * k * count(out), a.dtype};
  }
};
extern constinit Kernel<void(const MatmulArgs&, Stream&)> matmul;

/// Returns the size of the prepared form of b (K, N) for products of a (`rows`, K); 0 if its device has none that takes
/// less time. On the CPU, AMX has one for float32.
int64_t prepared_matrix_bytes(const TensorView& b, int64_t rows);

}  // namespace levin::kernels
