// Implicit GEMM for 16-bit floats, which ships where channels_last.cu cannot run, in its own translation unit.

#include "kernels/cuda/conv/04_tensor_cores.cuh"
#include "kernels/cuda/conv/rungs.h"

namespace levin::kernels::cuda {

template <class T>
void run_implicit_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
  run_pass_of<ImplicitConv<T, HalfProduct<T>>>(pass, t, s, stream);
}
template void run_implicit_conv<__half>(ConvPass, const ConvTensors<__half>&, const ConvShape&, Stream&);
template void run_implicit_conv<__nv_bfloat16>(ConvPass, const ConvTensors<__nv_bfloat16>&, const ConvShape&, Stream&);

}  // namespace levin::kernels::cuda
