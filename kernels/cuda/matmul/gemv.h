#pragma once
// Products with a vector: one row or one column of C.

#include "kernels/cuda/matmul/problem.cuh"

namespace levin::kernels::cuda {

template <class T>
bool can_gemv(const Problem<T>& p) {
  return p.m == 1 || p.n == 1;
}

/// float and the 16-bit floats.
template <class T>
void run_gemv(const Problem<T>& p, Stream& stream);

}  // namespace levin::kernels::cuda
