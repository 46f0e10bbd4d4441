#pragma once
// Settings of the matrix product on CUDA devices.

#include <atomic>

namespace levin::kernels::cuda {

/// Whether float32 products (matmul, linear) may round their operands to TF32, 10 bits of mantissa, and use tensor
/// cores: several times faster, with relative errors of about 1e-3 of an operand. For the whole process; off by
/// default.
inline std::atomic<bool> allow_tf32{false};

}  // namespace levin::kernels::cuda
