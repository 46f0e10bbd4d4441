#pragma once
// Kernels that are compiled for films. Each function calls its kernel for one thread, as Launch::body does; the context
// is the struct of the kernel's arguments. Only kernels.cpp may contain these kernels.

namespace levin::film {

/// Of the tour's kernel.
struct BlockSums {
  const float* x;
  float* sums;
};

void block_sums(void* arguments);
void block_sums_without_barriers(void* arguments);
void reduce_01(void* lines);  ///< ReduceLines<float, float>
void reduce_02(void* lines);
void reduce_04(void* lines);
void transpose_01(void* problem);  ///< TransposeProblem, elements of 4 bytes
void transpose_02(void* problem);
void transpose_03(void* problem);

}  // namespace levin::film
