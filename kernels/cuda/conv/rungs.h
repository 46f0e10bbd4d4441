#pragma once
// The rungs for one type and one of the three convolutions, each defined in its own translation unit.

#include "kernels/cuda/conv/shape.cuh"

namespace levin::kernels::cuda {

enum class ConvPass { forward, backward_input, backward_weight };

/// Any floating type.
template <class T>
void run_direct_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream);
/// float and double.
template <class T>
void run_columns_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream);
/// float and the 16-bit floats, if fits_implicit_conv().
template <class T>
void run_implicit_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream);

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

}  // namespace levin::kernels::cuda
