// conv2d and its gradients on CUDA devices: the choice of the kernel by type and shape, and the ladder's list.

#include "kernels/cuda/conv/ladder.h"
#include "kernels/cuda/conv/rungs.h"
#include "kernels/cuda/vendor/choice.h"
#include "kernels/cuda/vendor/conv.h"

namespace levin::kernels::cuda {

namespace {

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

/// Uses implicit GEMM if the product has enough rows for tiles of 64 to pay off.
template <ConvPass pass>
void run_shipping(const Conv2dArgs& args, Stream& stream) {
  if (prefer_cudnn && cudnn_conv(pass, args, stream)) return;
  const ConvShape s(args);
  const int rows = pass == ConvPass::backward_input ? s.inputs : s.outputs;
  with_tensors(pass, args, [&]<class T>(const ConvTensors<T>& tensors) {
    if constexpr (!std::is_same_v<T, double>) {
      if (rows >= 4 && fits_implicit_conv(s)) return run_implicit_conv<T>(pass, tensors, s, stream);
    }
    run_direct_conv<T>(pass, tensors, s, stream);
  });
}

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
    if constexpr (sizeof(T) >= 4) run_columns_conv<T>(pass, t, s, stream);
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
};

}  // namespace

std::span<const ConvRung> conv_rungs() { return kRungs; }

void conv2d(const Conv2dArgs& args, Stream& stream) { run_shipping<ConvPass::forward>(args, stream); }
void conv2d_backward_input(const Conv2dArgs& args, Stream& stream) {
  run_shipping<ConvPass::backward_input>(args, stream);
}
void conv2d_backward_weight(const Conv2dArgs& args, Stream& stream) {
  run_shipping<ConvPass::backward_weight>(args, stream);
}

}  // namespace levin::kernels::cuda
