#pragma once
// Convolutions by cuDNN.

#include "kernels/cuda/conv/rungs.h"

namespace levin::kernels::cuda {

/// Computes the convolution by cuDNN. Returns false, having touched nothing but the result, for unsupported arguments:
/// empty tensors, and shapes for which cuDNN has no deterministic algorithm within 256 MiB of workspace. Sums of
/// float32 are computed in float32 unless allow_tf32 is set, those of 16-bit floats in float32. Throws DeviceError if
/// cuDNN fails.
bool cudnn_conv(ConvPass pass, const Conv2dArgs& args, Stream& stream);

}  // namespace levin::kernels::cuda
