// matmul on CUDA devices: chooses the kernel by type, shape and device.

#include "kernels/cuda/matmul/fused.cuh"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/options.h"
#include "kernels/cuda/sgemm/03_shared_tile.cuh"
#include "kernels/cuda/vendor/choice.h"
#include "kernels/cuda/vendor/gemm.h"

namespace levin::kernels::cuda {

namespace {

/// Supports any type, shape and strides: double, the integers, and problems too large for one launch of the ladders.
template <class T>
void run_general(const Problem<T>& p, Stream& stream) {
  run_gemm_shared_tile<T, 16>(p, stream);
}

template <class T>
void choose_half(const Problem<T>& p, Stream& stream) {
  if (can_gemv(p)) return run_gemv(p, stream);
  if (can_hgemm_persistent(p)) return run_hgemm<T>(p, stream);
  if (can_hgemm_any_operand(p)) return run_hgemm_any_operand<T>(p, stream);
  run_general(p, stream);
}

template <class T>
void choose_matmul(const Problem<T>& p, Stream& stream) {
  run_general(p, stream);
}

}  // namespace

void choose_matmul(const Problem<float>& p, Stream& stream) {
  if (can_gemv(p)) return run_gemv(p, stream);
  if (!can_sgemm(p)) return run_general(p, stream);
  if (allow_tf32 && can_sgemm_tf32(p)) return run_sgemm_large<Tf32Warps, Identity>(p, stream);
  run_sgemm_async_stages<Identity>(p, stream);
}
void choose_matmul(const Problem<__half>& p, Stream& stream) { choose_half(p, stream); }
void choose_matmul(const Problem<__nv_bfloat16>& p, Stream& stream) { choose_half(p, stream); }

void matmul(const MatmulArgs& args, Stream& stream) {
  if (args.out.numel() == 0) return;
  if (prefer_cublas && cublas_matmul(args, stream)) return;
  dispatch_numeric(args.out.dtype, "matmul", [&]<class T>() { choose_matmul(problem_of<T>(args), stream); });
}

}  // namespace levin::kernels::cuda
