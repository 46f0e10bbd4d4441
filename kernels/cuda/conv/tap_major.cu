// The rung of float32 with k = (tap, channel), in its own translation unit.

#include "kernels/cuda/conv/06_tap_major.cuh"
#include "kernels/cuda/conv/rungs.h"

namespace levin::kernels::cuda {

void run_tap_major_conv(ConvPass pass, const ConvTensors<float>& t, const ConvShape& s, Stream& stream) {
  run_pass_of<TapMajorConv>(pass, t, s, stream);
}

}  // namespace levin::kernels::cuda
