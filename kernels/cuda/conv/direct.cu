// The rung for double and for shapes that implicit GEMM does not take, in its own translation unit.

#include "kernels/cuda/conv/01_direct.cuh"
#include "kernels/cuda/conv/rungs.h"

namespace levin::kernels::cuda {

template <class T>
void run_direct_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
  run_pass_of<DirectConv<T>>(pass, t, s, stream);
}
template void run_direct_conv<double>(ConvPass, const ConvTensors<double>&, const ConvShape&, Stream&);
template void run_direct_conv<float>(ConvPass, const ConvTensors<float>&, const ConvShape&, Stream&);
template void run_direct_conv<__half>(ConvPass, const ConvTensors<__half>&, const ConvShape&, Stream&);
template void run_direct_conv<__nv_bfloat16>(ConvPass, const ConvTensors<__nv_bfloat16>&, const ConvShape&, Stream&);

}  // namespace levin::kernels::cuda
