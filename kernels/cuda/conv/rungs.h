#pragma once
// The rungs for one type and one of the three convolutions, each defined in its own translation unit.

#include "kernels/cuda/conv/shape.cuh"

namespace levin::kernels::cuda {

enum class ConvPass { forward, backward_input, backward_weight };

/// Any floating type.
template <class T>
void run_direct_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream);
/// float and the 16-bit floats, if fits_implicit_conv().
template <class T>
void run_implicit_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream);
/// The 16-bit floats, if fits_channels_last_conv<T>().
template <class T>
void run_channels_last_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream);
template <class T>
void run_halo_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream);
/// If fits_channels_last_conv<float>().
void run_tap_major_conv(ConvPass pass, const ConvTensors<float>& t, const ConvShape& s, Stream& stream);

/// Returns Rung's function for the pass.
template <class Rung, class T>
void run_pass_of(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
  switch (pass) {
    case ConvPass::forward:
      return Rung::forward(t, s, stream);
    case ConvPass::backward_input:
      return Rung::backward_input(t, s, stream);
    case ConvPass::backward_weight:
      return Rung::backward_weight(t, s, stream);
  }
}

constexpr const char* name_of_pass(ConvPass pass) {
  constexpr const char* names[] = {"conv2d", "conv2d_backward_input", "conv2d_backward_weight"};
  return names[static_cast<int>(pass)];
}

/// Calls f.template operator()<T>(the tensors as T) with the device type of a floating dtype.
template <class F>
void with_tensors(ConvPass pass, const Conv2dArgs& args, F&& f) {
  dispatch_floating(args.y.dtype, name_of_pass(pass), [&]<class L>() {
    using T = DeviceType<L>;
    f.template operator()<T>(ConvTensors<T>::template of<L>(args));
  });
}

}  // namespace levin::kernels::cuda
