// The rungs of 16-bit floats with the channels innermost, in their own translation unit.

#include "kernels/cuda/conv/07_halo.cuh"
#include "kernels/cuda/conv/rungs.h"

namespace levin::kernels::cuda {

template <class T>
void run_channels_last_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
  run_pass_of<ChannelsLastConv<T, WindowTiles<T>>>(pass, t, s, stream);
}
template <class T>
void run_halo_conv(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
  run_pass_of<ChannelsLastConv<T, HaloTiles<T>>>(pass, t, s, stream);
}

template void run_channels_last_conv<__half>(ConvPass, const ConvTensors<__half>&, const ConvShape&, Stream&);
template void run_channels_last_conv<__nv_bfloat16>(ConvPass, const ConvTensors<__nv_bfloat16>&, const ConvShape&,
                                                    Stream&);
template void run_halo_conv<__half>(ConvPass, const ConvTensors<__half>&, const ConvShape&, Stream&);
template void run_halo_conv<__nv_bfloat16>(ConvPass, const ConvTensors<__nv_bfloat16>&, const ConvShape&, Stream&);

}  // namespace levin::kernels::cuda
