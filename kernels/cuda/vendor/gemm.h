#pragma once
// The matrix product by cuBLAS.

#include <levin/kernels/matmul.h>

namespace levin::kernels::cuda {

/// matmul of at least one element, by cuBLAS; false, with only `out` touched, for what it does not take: integers,
/// operands without a unit stride, empty sums, a bias besides beta, and batches of more than 64 pieces with strides of
/// their own. float32 sums are float32's unless allow_tf32 is set; 16-bit floats are added up in float32. Throws
/// DeviceError, or OutOfMemory, where cuBLAS fails.
bool cublas_matmul(const MatmulArgs& args, Stream& stream);

}  // namespace levin::kernels::cuda
