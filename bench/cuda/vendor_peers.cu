// Calls cuBLAS and cuDNN directly, not through the kernel tables, so that our own kernel never runs by mistake for a
// problem that they do not support.

#include "bench/cuda/problem.h"
#include "kernels/cuda/vendor/conv.h"
#include "kernels/cuda/vendor/cublas.h"
#include "kernels/cuda/vendor/cudnn.h"
#include "kernels/cuda/vendor/gemm.h"

#include <levin/kernels/cuda.h>

namespace levin::bench {

namespace {

/// Makes a peer from taken(stream), which returns whether the library supports the problem. open() throws if the
/// library is missing.
template <class Open, class Taken>
Peer library_peer(const std::string& name, Open open, Taken taken) {
  try {
    open();
  } catch (const Error& e) {
    return {name, {}, e.what()};
  }
  return {name, [name, taken](Stream& stream) {
            if (!taken(stream)) throw DeviceError("[bench] " + name + " does not take this problem.");
          }};
}

}  // namespace

Peer cublas_peer(const kernels::MatmulArgs& args, bool tf32) {
  return library_peer(
      "cublas", [] { (void)kernels::cuda::cublas(); },
      [args, tf32](Stream& stream) {
        cuda::set_allow_tf32(tf32);
        const bool taken = kernels::cuda::cublas_matmul(args, stream);
        cuda::set_allow_tf32(false);
        return taken;
      });
}

Peer cudnn_peer(ConvPass pass, const kernels::Conv2dArgs& args) {
  return library_peer(
      "cudnn", [] { (void)kernels::cuda::cudnn(); },
      [pass, args](Stream& stream) {
        return kernels::cuda::cudnn_conv(static_cast<kernels::cuda::ConvPass>(pass), args, stream);
      });
}

}  // namespace levin::bench
