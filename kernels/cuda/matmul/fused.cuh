#pragma once
// The shipping rungs with epilogues that do more than add a bias.

#include "kernels/cuda/hgemm/hgemm.cuh"
#include "kernels/cuda/sgemm/sgemm.cuh"

namespace levin::kernels::cuda {

// Defined in matmul.cu: runs the kernel that ships for a product.
void choose_matmul(const Problem<float>& p, Stream& stream);
void choose_matmul(const Problem<__half>& p, Stream& stream);
void choose_matmul(const Problem<__nv_bfloat16>& p, Stream& stream);

template <class Activation>
void run_fused(const Problem<float>& p, Stream& stream) {
  constexpr Access k = Access::along_k;
  if (large_sgemm(p)) return run_sgemm_tiles<LargeFloatWarps, k, k, Activation>(p, stream);
  run_sgemm_tiles<SmallFloatWarps, k, k, Activation>(p, stream);
}

/// Both operands of a layer run along k; others are gathered.
template <class Activation, class T>
requires ptx::is_16_bit<T>
void run_fused(const Problem<T>& p, Stream& stream) {
  constexpr Access k = Access::along_k;
  if (can_hgemm_persistent(p) && p.a.step == 1 && p.b.step == 1)
    return run_hgemm<T, Layout::along_k, Layout::along_k, Activation>(p, stream);
  run_hgemm_gathered<T, k, k, Activation>(p, stream);
}

// Instantiated in fused_f16.cu and fused_bf16.cu.
extern template void run_fused<Relu, __half>(const Problem<__half>&, Stream&);
extern template void run_fused<Gelu, __half>(const Problem<__half>&, Stream&);
extern template void run_fused<Relu, __nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);
extern template void run_fused<Gelu, __nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);

}  // namespace levin::kernels::cuda
