// Each rung as the three convolutions.
#include "kernels/cuda/conv/ladder.h"

#include "kernels/cuda/conv/02_columns.cuh"
#include "kernels/cuda/conv/rungs.h"

namespace levin::kernels::cuda {

namespace {

struct Direct {
  static bool can(const Conv2dArgs& a) { return is_floating(a.y.dtype); }
  template <class T>
  static void run(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    run_direct_conv<T>(pass, t, s, stream);
  }
};
struct Columns {
  static bool can(const Conv2dArgs& a) { return a.y.dtype == DType::f32 || a.y.dtype == DType::f64; }
  template <class T>
  static void run(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if constexpr (sizeof(T) >= 4) run_pass_of<ColumnsConv<T>>(pass, t, s, stream);
  }
};
struct ImplicitGemm {
  static bool can(const Conv2dArgs& a) { return a.y.dtype == DType::f32 && fits_implicit_conv(ConvShape(a)); }
  template <class T>
  static void run(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if constexpr (sizeof(T) <= 4) run_implicit_conv<T>(pass, t, s, stream);
  }
};
struct TensorCores : ImplicitGemm {
  static bool can(const Conv2dArgs& a) { return size_of(a.y.dtype) == 2 && fits_implicit_conv(ConvShape(a)); }
};
struct ChannelsInnermost {
  static bool can(const Conv2dArgs& a) {
    return size_of(a.y.dtype) == 2 && fits_channels_last_conv<__half>(ConvShape(a));
  }
  template <class T>
  static void run(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if constexpr (sizeof(T) == 2) run_channels_last_conv<T>(pass, t, s, stream);
  }
};
struct TapMajor {
  static bool can(const Conv2dArgs& a) {
    return a.y.dtype == DType::f32 && fits_channels_last_conv<float>(ConvShape(a));
  }
  template <class T>
  static void run(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if constexpr (std::is_same_v<T, float>) run_tap_major_conv(pass, t, s, stream);
  }
};
struct HaloOfTaps : ChannelsInnermost {
  template <class T>
  static void run(ConvPass pass, const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if constexpr (sizeof(T) == 2) run_halo_conv<T>(pass, t, s, stream);
  }
};

template <class Rung, ConvPass pass>
void run_rung(const Conv2dArgs& args, Stream& stream) {
  with_tensors(pass, args, [&]<class T>(const ConvTensors<T>& tensors) {
    Rung::template run<T>(pass, tensors, ConvShape(args), stream);
  });
}
template <class Rung>
constexpr ConvRung rung(const char* name, const char* idea) {
  return {name,
          idea,
          Rung::can,
          run_rung<Rung, ConvPass::forward>,
          run_rung<Rung, ConvPass::backward_input>,
          run_rung<Rung, ConvPass::backward_weight>};
}

constexpr ConvRung kRungs[] = {
    rung<Direct>("direct", "a thread an element"),
    rung<Columns>("columns", "windows as columns in memory, then a matrix product"),
    rung<ImplicitGemm>("implicit_gemm", "the product finds the windows itself"),
    rung<TensorCores>("tensor_cores", "the same on tensor cores"),
    rung<ChannelsInnermost>("channels_last", "the channels innermost, for copies of 16 bytes"),
    rung<TapMajor>("tap_major", "the taps outside of the channels, for copies without divisions"),
    rung<HaloOfTaps>("halo", "all taps read the same pixels in shared memory"),
};

}  // namespace

std::span<const ConvRung> conv_rungs() { return kRungs; }

}  // namespace levin::kernels::cuda
