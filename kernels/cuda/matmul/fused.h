#pragma once
// A matrix product and the following operations of a layer, in one kernel.

#include <levin/kernels/matmul.h>

namespace levin::kernels::cuda {

enum class FusedActivation { none, relu, gelu };

/// Computes out = activation(alpha a b + beta out + bias) + residual, with matmul's arguments; gelu uses the error
/// function. residual is contiguous and of out's shape and type, or absent (null pointer). Takes float32, float16 and
/// bfloat16; throws DTypeError for other types.
void matmul_fused(const MatmulArgs& args, FusedActivation activation, const TensorView& residual, Stream& stream);

}  // namespace levin::kernels::cuda
