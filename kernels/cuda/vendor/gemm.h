#pragma once
// The matrix product by cuBLAS.

#include <levin/kernels/matmul.h>

namespace levin::kernels::cuda {

/// Computes matmul of at least one element by cuBLAS. Returns false, having touched nothing but `out`, for unsupported
/// arguments: integers, operands without a unit stride, empty sums, a bias together with beta, and batches of more than
/// 64 pieces with irregular strides. Sums of float32 are computed in float32 unless allow_tf32 is set, those of 16-bit
/// floats in float32. Throws DeviceError or OutOfMemory if cuBLAS fails.
bool cublas_matmul(const MatmulArgs& args, Stream& stream);

}  // namespace levin::kernels::cuda
