// conv2d and its gradients on CUDA devices: the choice of the kernel by type and shape.

#include "kernels/cuda/conv/rungs.h"
#include "kernels/cuda/vendor/choice.h"
#include "kernels/cuda/vendor/conv.h"

namespace levin::kernels::cuda {

namespace {

/// True if the chunks of channels hold few zeros, except in a network's first layer.
bool fills_chunks(const ConvShape& s) {
  constexpr int chunk = kChunk<__half>;
  return s.groups == 1 || (s.inputs % chunk == 0 && s.outputs % chunk == 0);
}

/// True if a halo is read by several taps, and at most a quarter of its slabs of 64 channels are zeros.
bool fills_slabs(ConvPass pass, const ConvShape& s) {
  const std::int64_t channels = pass == ConvPass::forward ? s.inputs : s.outputs;
  return pass != ConvPass::backward_weight && s.kernel() > 1 && ceil_div(channels, 64) * 64 * 3 <= channels * 4;
}

/// True if rung 6's tiles fill a large device, and few of the numbers that they multiply are zeros. The weight's
/// gradient must also be worth two more launches.
bool fills_float_tiles(ConvPass pass, const ConvShape& s) {
  constexpr std::int64_t multiprocessors = 132, worth_copies = std::int64_t{1} << 27;  // about 8 us on an H100
  if (pass == ConvPass::backward_weight) {
    return s.inputs >= 3 && s.outputs >= 3 && s.batch * s.y_image() * s.taps() >= worth_copies;
  }
  const bool forward = pass == ConvPass::forward;
  const std::int64_t rows = forward ? s.outputs : s.inputs;
  const std::int64_t pixels = forward ? s.out_plane() : s.in_plane() / (std::int64_t{s.stride_h} * s.stride_w);
  return s.groups * ceil_div(rows, 64) * ceil_div(s.batch * pixels, 128) >= multiprocessors;
}

/// Uses implicit GEMM if the product has enough rows for tiles of 64 to pay off.
template <ConvPass pass>
void run_shipping(const Conv2dArgs& args, Stream& stream) {
  if (prefer_cudnn && cudnn_conv(pass, args, stream)) return;
  const ConvShape s(args);
  const int rows = pass == ConvPass::backward_input ? s.inputs : s.outputs;
  with_tensors(pass, args, [&]<class T>(const ConvTensors<T>& tensors) {
    if constexpr (sizeof(T) == 2) {
      if (rows >= 4 && fits_channels_last_conv<T>(s) && fills_chunks(s))
        return fills_slabs(pass, s) ? run_halo_conv<T>(pass, tensors, s, stream)
                                    : run_channels_last_conv<T>(pass, tensors, s, stream);
    }
    if constexpr (std::is_same_v<T, float>) {
      if (rows >= 4 && fits_channels_last_conv<T>(s) && fills_float_tiles(pass, s))
        return run_tap_major_conv(pass, tensors, s, stream);
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
