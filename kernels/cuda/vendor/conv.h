#pragma once
// Convolutions by cuDNN.

#include "kernels/cuda/conv/rungs.h"

namespace levin::kernels::cuda {

/// The convolution's result by cuDNN; false, with only the result touched, for what it does not take: empty tensors,
/// and shapes that it says it has no deterministic algorithm for within 256 MiB of workspace. float32 sums are
/// float32's unless allow_tf32 is set; 16-bit floats are added up in float32. Throws DeviceError where cuDNN fails.
bool cudnn_conv(ConvPass pass, const Conv2dArgs& args, Stream& stream);

}  // namespace levin::kernels::cuda
