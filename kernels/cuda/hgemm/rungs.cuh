#pragma once
// The rungs of 16-bit floats that do not ship, for one type.

#include "kernels/cuda/hgemm/01_naive.cuh"
#include "kernels/cuda/hgemm/02_shared_tile.cuh"
#include "kernels/cuda/hgemm/04_swizzled.cuh"
#include "kernels/cuda/hgemm/06_register_buffers.cuh"

namespace levin::kernels::cuda {

template <class T>
struct HalfRungs {
  static void naive(const Problem<T>& p, Stream& stream) { run_gemm_coalesced<T>(p, stream); }
  static void shared_tile(const Problem<T>& p, Stream& stream) { run_gemm_shared_tile<T, 32>(p, stream); }
  static void tensor_cores(const Problem<T>& p, Stream& stream) { run_hgemm_tensor_cores<T, false>(p, stream); }
  static void swizzled(const Problem<T>& p, Stream& stream) { run_hgemm_swizzled<T>(p, stream); }
  static void async_stages(const Problem<T>& p, Stream& stream) { run_hgemm_async_stages<T>(p, stream); }
  static void register_buffers(const Problem<T>& p, Stream& stream) { run_hgemm_register_buffers<T>(p, stream); }
};

// Instantiated in rungs_f16.cu and rungs_bf16.cu.
extern template struct HalfRungs<__half>;
extern template struct HalfRungs<__nv_bfloat16>;

}  // namespace levin::kernels::cuda
