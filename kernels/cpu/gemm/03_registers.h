#pragma once
// Rung 3: a tile of C in registers.
// Idea: hold 14 x 2 vectors (AVX-512) or 6 x 2 (AVX2) of C in registers over the whole of k; see tile-inl.h.
// Changes: C is read and written once instead of k times; SIMD by Highway with run-time dispatch; fused multiply-adds.
// Bound: A and B are read in place: rows of B are on as many pages as k is long, each read again for every row block,
// so caches and TLB miss; operands without a unit stride in the right dimension have to be copied first. Gained at 1024
// over rung 2: 2 times on one AVX-512 core, 6 times at 512, where more fits the caches.

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/ops.h"

#include <vector>

namespace levin::kernels::cpu {

namespace detail {
/// Returns a dense copy (rows, columns) of a strided matrix.
template <class T>
std::vector<T> dense(const T* src, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  std::vector<T> out(static_cast<std::size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      out[static_cast<std::size_t>(i * columns + j)] = src[i * row_stride + j * column_stride];
    }
  }
  return out;
}
}  // namespace detail

/// Requires m, n, k >= 1.
template <class T>
void gemm_registers(const GemmArgs<T>& g) {
  const GemmOps<T>& ops = gemm_ops<T>();
  const RowBlocks blocks(g.m, ops.max_height);
  for (int64_t i = 0; i < g.batch; ++i) {
    const T *a = g.a + i * g.a_bs, *b = g.b + i * g.b_bs;
    std::vector<T> a_copy, b_copy;
    int64_t a_step = g.a_cs, b_step = g.b_rs;
    if (g.a_rs != 1 || a_step == 0) {
      a_copy = detail::dense(a, g.k, g.m, g.a_cs, g.a_rs);
      a = a_copy.data();
      a_step = g.m;
    }
    // The tile reads whole vectors, so a ragged last panel needs spare room behind it.
    if (g.b_cs != 1 || b_step == 0 || g.n % ops.panel_width != 0) {
      b_copy = detail::dense(b, g.k, g.n, g.b_rs, g.b_cs);
      b_copy.resize(static_cast<std::size_t>(g.k * g.n + ops.panel_width));
      b = b_copy.data();
      b_step = g.n;
    }
    ops.block({&blocks, 0, blocks.count, 0, g.n, g.k, a, a_step, 0, b, b_step, g.c + i * g.c_bs, g.c_rs, g.alpha,
               g.beta, g.bias_n});
  }
}

}  // namespace levin::kernels::cpu
