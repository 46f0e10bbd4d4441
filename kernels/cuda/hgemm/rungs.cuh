#pragma once
// The definitions of rungs.h.

#include "kernels/cuda/hgemm/01_naive.cuh"
#include "kernels/cuda/hgemm/02_shared_tile.cuh"
#include "kernels/cuda/hgemm/04_swizzled.cuh"
#include "kernels/cuda/hgemm/06_register_buffers.cuh"
#include "kernels/cuda/hgemm/rungs.h"

namespace levin::kernels::cuda {

template <class T>
void HalfRungs<T>::naive(const Problem<T>& p, Stream& stream) {
  run_gemm_coalesced<T>(p, stream);
}
template <class T>
void HalfRungs<T>::shared_tile(const Problem<T>& p, Stream& stream) {
  run_gemm_shared_tile<T, 32>(p, stream);
}
template <class T>
void HalfRungs<T>::tensor_cores(const Problem<T>& p, Stream& stream) {
  run_hgemm_tensor_cores<T, false>(p, stream);
}
template <class T>
void HalfRungs<T>::swizzled(const Problem<T>& p, Stream& stream) {
  run_hgemm_swizzled<T>(p, stream);
}
template <class T>
void HalfRungs<T>::async_stages(const Problem<T>& p, Stream& stream) {
  run_hgemm_async_stages<T>(p, stream);
}
template <class T>
void HalfRungs<T>::register_buffers(const Problem<T>& p, Stream& stream) {
  run_hgemm_register_buffers<T>(p, stream);
}

}  // namespace levin::kernels::cuda
