// The shipping rung of float32, in its own translation unit.

#include "kernels/cuda/conv/03_implicit_gemm.cuh"
#include "kernels/cuda/conv/rungs.h"

namespace levin::kernels::cuda {

template <class T>
void run_implicit_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
  run_pass_of<ImplicitConv<T, FloatProduct>>(pass, t, s, stream);
}
template void run_implicit_conv<float>(ConvPass, const ConvTensors<float>&, const ConvShape&, Stream&);

}  // namespace levin::kernels::cuda
