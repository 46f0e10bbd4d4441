// Chooses the kernel of a fused product, and defines those of float32.

#include "kernels/cuda/matmul/fused.h"

#include "kernels/cuda/matmul/fused.cuh"

namespace levin::kernels::cuda {

namespace {

template <class T>
void run(const Problem<T>& p, FusedActivation activation, Stream& stream) {
  switch (activation) {
    case FusedActivation::none:
      return choose_matmul(p, stream);
    case FusedActivation::relu:
      return run_fused<Relu>(p, stream);
    case FusedActivation::gelu:
      return run_fused<Gelu>(p, stream);
  }
}

}  // namespace

void matmul_fused(const MatmulArgs& args, FusedActivation activation, const TensorView& residual, Stream& stream) {
  if (args.out.numel() == 0) return;
  const auto run_type = [&]<class L>() {
    auto p = problem_of<L>(args);
    if (residual.pointer) p.residual = reinterpret_cast<const DeviceType<L>*>(residual.data<L>());
    run(p, activation, stream);
  };
  switch (args.out.dtype) {
    case DType::f32:
      return run_type.template operator()<float>();
    case DType::f16:
      return run_type.template operator()<Half>();
    case DType::bf16:
      return run_type.template operator()<BFloat16>();
    default:
      levin::detail::refuse_dtype("matmul", args.out.dtype, "float32, float16 and bfloat16");
  }
}

}  // namespace levin::kernels::cuda
