// conv2d and its gradients on CUDA devices: the choice of the kernel by type and shape, and the ladder's list.

#include "kernels/cuda/conv/ladder.h"
#include "kernels/cuda/conv/rungs.cuh"

namespace levin::kernels::cuda {

namespace {

struct Forward {
  static constexpr const char* kName = "conv2d";
  static std::int64_t rows(const ConvShape& s) { return s.outputs; }  ///< of the matrix product
  template <class Rung, class T>
  static void run(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    Rung::forward(t, s, stream);
  }
};
struct BackwardInput {
  static constexpr const char* kName = "conv2d_backward_input";
  static std::int64_t rows(const ConvShape& s) { return s.inputs; }
  template <class Rung, class T>
  static void run(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    Rung::backward_input(t, s, stream);
  }
};
struct BackwardWeight {
  static constexpr const char* kName = "conv2d_backward_weight";
  static std::int64_t rows(const ConvShape& s) { return s.outputs; }
  template <class Rung, class T>
  static void run(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    Rung::backward_weight(t, s, stream);
  }
};

/// The implicit GEMM of a type; double has none.
template <class T>
struct Implicit {
  using type = HalfConv<T>;
};
template <>
struct Implicit<float> {
  using type = FloatConv;
};

/// Tiles of 64 rows pay from a few rows on.
template <class Pass>
void run_pass(const Conv2dArgs& args, Stream& stream) {
  const ConvShape s(args);
  dispatch_floating(args.y.dtype, Pass::kName, [&]<class L>() {
    using T = DeviceType<L>;
    const auto tensors = ConvTensors<T>::template of<L>(args);
    if constexpr (!std::is_same_v<T, double>) {
      using Rung = typename Implicit<T>::type;
      if (Pass::rows(s) >= 4 && Rung::can(s)) return Pass::template run<Rung>(tensors, s, stream);
    }
    Pass::template run<DirectConv<T>>(tensors, s, stream);
  });
}

struct Direct {
  static bool can(const Conv2dArgs& a) { return is_floating(a.y.dtype); }
  template <class Pass>
  static void run(const Conv2dArgs& args, Stream& stream) {
    dispatch_floating(args.y.dtype, Pass::kName, [&]<class L>() {
      using T = DeviceType<L>;
      Pass::template run<DirectConv<T>>(ConvTensors<T>::template of<L>(args), ConvShape(args), stream);
    });
  }
};
struct Columns {
  static bool can(const Conv2dArgs& a) { return a.y.dtype == DType::f32 || a.y.dtype == DType::f64; }
  template <class Pass>
  static void run(const Conv2dArgs& args, Stream& stream) {
    const ConvShape s(args);
    if (args.y.dtype == DType::f32) {
      Pass::template run<ColumnsConv<float>>(ConvTensors<float>::of<float>(args), s, stream);
    } else {
      Pass::template run<ColumnsConv<double>>(ConvTensors<double>::of<double>(args), s, stream);
    }
  }
};
struct ImplicitGemm {
  static bool can(const Conv2dArgs& a) { return a.y.dtype == DType::f32 && FloatConv::can(ConvShape(a)); }
  template <class Pass>
  static void run(const Conv2dArgs& args, Stream& stream) {
    Pass::template run<FloatConv>(ConvTensors<float>::of<float>(args), ConvShape(args), stream);
  }
};
struct TensorCores {
  static bool can(const Conv2dArgs& a) {
    return (a.y.dtype == DType::f16 || a.y.dtype == DType::bf16) && HalfConv<__half>::can(ConvShape(a));
  }
  template <class Pass>
  static void run(const Conv2dArgs& args, Stream& stream) {
    const ConvShape s(args);
    if (args.y.dtype == DType::f16) {
      Pass::template run<HalfConv<__half>>(ConvTensors<__half>::of<Half>(args), s, stream);
    } else {
      Pass::template run<HalfConv<__nv_bfloat16>>(ConvTensors<__nv_bfloat16>::of<BFloat16>(args), s, stream);
    }
  }
};

template <class Rung>
constexpr ConvRung rung(const char* name, const char* idea) {
  return {name,
          idea,
          Rung::can,
          Rung::template run<Forward>,
          Rung::template run<BackwardInput>,
          Rung::template run<BackwardWeight>};
}

constexpr ConvRung kRungs[] = {
    rung<Direct>("direct", "a thread an element"),
    rung<Columns>("columns", "windows as columns in memory, then a matrix product"),
    rung<ImplicitGemm>("implicit_gemm", "the product finds the windows itself"),
    rung<TensorCores>("tensor_cores", "the same on tensor cores"),
};

}  // namespace

std::span<const ConvRung> conv_rungs() { return kRungs; }

void conv2d(const Conv2dArgs& args, Stream& stream) { run_pass<Forward>(args, stream); }
void conv2d_backward_input(const Conv2dArgs& args, Stream& stream) { run_pass<BackwardInput>(args, stream); }
void conv2d_backward_weight(const Conv2dArgs& args, Stream& stream) { run_pass<BackwardWeight>(args, stream); }

}  // namespace levin::kernels::cuda
