#pragma once
// Changes: nothing yet; this is the baseline to beat, and the fallback of the ladder.

#include "kernels/cpu/gemm/gemm.h"

#include <Eigen/Core>

namespace levin::kernels::cpu {

template <class T>
void gemm_eigen(const GemmArgs<T>& g) {
  using Index = Eigen::Index;
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  using View = Eigen::Map<const Matrix, 0, Strides>;
  for (int64_t i = 0; i < g.batch; ++i) {
    Eigen::Map<Matrix, 0, Eigen::OuterStride<>> c(g.c + i * g.c_bs, Index(g.m), Index(g.n),
                                                  Eigen::OuterStride<>(g.c_rs));
    if (g.beta == T(0)) {
      c.setZero();
    } else {
      c *= g.beta;
    }
    if (g.k > 0) {
      const View a(g.a + i * g.a_bs, Index(g.m), Index(g.k), Strides(g.a_rs, g.a_cs));
      const View b(g.b + i * g.b_bs, Index(g.k), Index(g.n), Strides(g.b_rs, g.b_cs));
      // Copies of A and B give Eigen the unit strides that its fast path needs.
      c.noalias() += g.alpha * (Matrix(a) * Matrix(b));
    }
    if (g.bias_n) c.rowwise() += Eigen::Map<const Eigen::Matrix<T, 1, Eigen::Dynamic>>(g.bias_n, Index(g.n));
  }
}

}  // namespace levin::kernels::cpu
