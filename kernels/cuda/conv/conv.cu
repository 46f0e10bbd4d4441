// conv2d and its gradients on CUDA devices: the choice of the kernel by type and shape.

#include "kernels/cuda/conv/rungs.h"
#include "kernels/cuda/vendor/choice.h"
#include "kernels/cuda/vendor/conv.h"

namespace levin::kernels::cuda {

namespace {

/// True if the chunks of channels hold few zeros, except in a network's first layer.
bool fills_chunks(const ConvShape& s) { return s.groups == 1 || (s.inputs % kChunk == 0 && s.outputs % kChunk == 0); }

/// Uses implicit GEMM if the product has enough rows for tiles of 64 to pay off.
template <ConvPass pass>
void run_shipping(const Conv2dArgs& args, Stream& stream) {
  if (prefer_cudnn && cudnn_conv(pass, args, stream)) return;
  const ConvShape s(args);
  const int rows = pass == ConvPass::backward_input ? s.inputs : s.outputs;
  with_tensors(pass, args, [&]<class T>(const ConvTensors<T>& tensors) {
    if constexpr (sizeof(T) == 2) {
      if (rows >= 4 && fits_channels_last_conv(s) && fills_chunks(s))
        return run_channels_last_conv<T>(pass, tensors, s, stream);
    }
    if constexpr (!std::is_same_v<T, double>) {
      if (rows >= 4 && fits_implicit_conv(s)) return run_implicit_conv<T>(pass, tensors, s, stream);
    }
    run_direct_conv<T>(pass, tensors, s, stream);
  });
}

}  // namespace

void conv2d(const Conv2dArgs& args, Stream& stream) { run_shipping<ConvPass::forward>(args, stream); }
void conv2d_backward_input(const Conv2dArgs& args, Stream& stream) {
  run_shipping<ConvPass::backward_input>(args, stream);
}
void conv2d_backward_weight(const Conv2dArgs& args, Stream& stream) {
  run_shipping<ConvPass::backward_weight>(args, stream);
}

}  // namespace levin::kernels::cuda
