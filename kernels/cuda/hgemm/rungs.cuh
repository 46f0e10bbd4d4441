#pragma once
// The definitions of rungs.h.

#include "kernels/cuda/hgemm/01_naive.cuh"
#include "kernels/cuda/hgemm/02_shared_tile.cuh"
#include "kernels/cuda/hgemm/04_swizzled.cuh"
#include "kernels/cuda/hgemm/06_register_buffers.cuh"
#include "kernels/cuda/hgemm/09_warpgroups.cuh"
#include "kernels/cuda/hgemm/hgemm.cuh"
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

/// Launches rung 9 with the large tile if it gives work to at least 100 blocks, else with the small one.
template <class T, Layout a, Layout b>
void run_hgemm_warpgroups(const Problem<T>& p, Stream& stream) {
  const auto run = [&]<class Tiles>() {
    run_hgemm_tiles<Tiles, Identity>(hgemm_warpgroups<Tiles, Epilogue<T, Identity>>, Tiles::kShared, p, 1, stream);
  };
  if (blocks_of<LargeGroupTiles<T, a, b>>(p) >= 100) return run.template operator()<LargeGroupTiles<T, a, b>>();
  run.template operator()<SmallGroupTiles<T, a, b>>();
}
template <class T>
void HalfRungs<T>::warpgroups(const Problem<T>& p, Stream& stream) {
  with_layouts(p, [&]<Layout a, Layout b>() { run_hgemm_warpgroups<T, a, b>(p, stream); });
}

}  // namespace levin::kernels::cuda
