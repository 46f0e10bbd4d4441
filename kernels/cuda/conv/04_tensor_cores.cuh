#pragma once
// Rung 4, which ships for 16-bit floats where rung 5 cannot run: implicit GEMM on tensor cores.
// Idea: the operands of rung 3, gathered by the hgemm kernel for operands of any layout: each thread collects eight
// elements in registers and stores them to swizzled shared memory as 16 bytes; mma.sync multiplies them and accumulates
// in float. Changes against rung 3: half the bytes and the tensor cores. Bound: single loads and addresses.

#include "kernels/cuda/conv/03_implicit_gemm.cuh"
#include "kernels/cuda/hgemm/08_any_operand.cuh"

namespace levin::kernels::cuda {

template <class T>
struct HalfProduct {
  static constexpr int kDepth = GatherTiles<T>::kDepth;
  template <class A, class B, class Out>
  static void run(const A& a, const B& b, const Out& out, const TileGrid& grid, std::int64_t m, std::int64_t n,
                  std::int64_t k, const Stream& stream) {
    launch_hgemm_any_operand<T>(a, b, out, grid, m, n, k, stream);
  }
};

}  // namespace levin::kernels::cuda
