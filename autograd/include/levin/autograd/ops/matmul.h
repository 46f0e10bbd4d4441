#pragma once
// Products of matrices.

#include <levin/core/tensor.h>

namespace levin {

/// PyTorch's rules: vectors, matrices, and batches that broadcast. Transposed operands are read in place.
Tensor matmul(const Tensor& a, const Tensor& b);
/// (M, K) x (K, N)
Tensor mm(const Tensor& a, const Tensor& b);
/// (B, M, K) x (B, K, N)
Tensor bmm(const Tensor& a, const Tensor& b);
/// beta * bias + alpha * a b
Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1);
/// x (..., I) weight (O, I)^T + bias (O) or undefined: (..., O)
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

struct AttentionOptions {
  Tensor mask{};                ///< bool (true takes part) or float added to the scores; broadcasts to (..., L, S)
  double dropout = 0.0;
  bool causal = false;          ///< position i sees 0..i
  std::optional<double> scale{};  ///< 1 / sqrt(E) unless given
};
/// softmax(q k^T * scale + mask) v with q (..., L, E), k (..., S, E), v (..., S, Ev). Runs by blocks with a running
/// softmax (Dao et al. 2022) where mask and dropout are absent, so the (L, S) scores are never stored.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

}  // namespace levin
