#pragma once
// Matrix products and attention.

#include <levin/core/tensor.h>

namespace levin {

/// Multiplies along a's last and b's second-to-last axis by PyTorch's rules: (..., M, K) x (..., K, N) to (..., M, N),
/// where the leading axes broadcast; of a vector (K), the axis that it lacks is missing in the result too. Transposed
/// operands are read without a copy. Throws ShapeError, and DTypeError for different types.
Tensor matmul(const Tensor& a, const Tensor& b);
/// Multiplies (M, K) x (K, N).
Tensor mm(const Tensor& a, const Tensor& b);
/// Multiplies (B, M, K) x (B, K, N).
Tensor bmm(const Tensor& a, const Tensor& b);
/// Computes beta * bias + alpha * a b: a (M, K), b (K, N), and bias that broadcasts to (M, N).
Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1);
/// Computes x weight^T + bias: x (..., I), weight (O, I), bias (O) or undefined; returns (..., O).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// Arguments of scaled_dot_product_attention.
struct AttentionOptions {
  Tensor attn_mask{};             ///< bool (true: attend) or float (added to the scores); broadcasts to (..., L, S)
  double dropout_p = 0.0;         ///< probability to drop a weight, in evaluation too: pass 0 there
  bool is_causal = false;         ///< position i attends to 0..i
  std::optional<double> scale{};  ///< defaults to 1 / sqrt(E)
  bool enable_gqa = false;        ///< axis -3 of k and v has fewer heads, each for as many successive heads of q
};
/// Computes softmax(q k^T * scale + mask) v with q (..., L, E), k (..., S, E), v (..., S, Ev) of one floating dtype,
/// whose leading sizes broadcast; returns (..., L, Ev). It runs by blocks with an online softmax (Dao et al. 2022),
/// also with a mask and dropout, so that the (L, S) scores are never stored: backward computes them again and drops the
/// same weights, whose random numbers come from default_generator(). A row that is masked entirely gives zeros. A
/// floating mask may require grad. The axes of the result lie in memory in the order of q's: of heads that are views of
/// (..., L, heads * E), transpose(1, 2) and reshape give (..., L, heads * Ev) without a copy, but view() may refuse to
/// merge batch and heads. Throws ShapeError, DTypeError and DeviceError for tensors that do not fit, and
/// ValueError for a mask beside is_causal and for a dropout_p outside [0, 1].
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

}  // namespace levin
