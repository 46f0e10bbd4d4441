#pragma once
// Products of vectors, matrices and tensors, composed of matrix products.

#include <levin/core/tensor.h>

#include <string_view>

namespace levin {

/// Multiplies two vectors of n elements; the result is (). vdot takes the conjugates of a's complex elements.
Tensor dot(const Tensor& a, const Tensor& b);
Tensor vdot(const Tensor& a, const Tensor& b);
/// Multiplies along the last axes: (..., K) x (..., K) to (..., ...).
Tensor inner(const Tensor& a, const Tensor& b);
/// Multiplies (M, K) x (K).
Tensor mv(const Tensor& a, const Tensor& b);
/// Multiplies (M) x (N) to (M, N).
Tensor outer(const Tensor& a, const Tensor& b);
/// beta * bias + alpha * a b, with a (M, K) and b (K).
Tensor addmv(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1);
/// beta * bias + alpha * the outer product of vectors.
Tensor addr(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1);
/// beta * bias + alpha * a b, with a (B, M, K) and b (B, K, N).
Tensor baddbmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1);
/// beta * bias + alpha * the sum of a b over the batch.
Tensor addbmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1);
/// Sums over pairs of axes: the last `axes` of a and the first of b, or those in the lists.
Tensor tensordot(const Tensor& a, const Tensor& b, int64_t axes = 2);
Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b);
/// Kronecker product.
Tensor kron(const Tensor& a, const Tensor& b);
/// Cross product along an axis of size 3.
Tensor cross(const Tensor& a, const Tensor& b, int64_t axis = -1);
/// Multiplies matrices in the order with the fewest multiplications; the first and the last may be vectors.
Tensor multi_dot(std::span<const Tensor> matrices);
Tensor multi_dot(std::initializer_list<Tensor> matrices);
/// Multiplies square matrices (..., N, N) n times with themselves; n >= 0.
Tensor matrix_power(const Tensor& x, int64_t n);
/// x1 (..., I), x2 (..., J), weight (O, I, J): returns (..., O) of x1^T weight[o] x2 + bias[o].
Tensor bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias = {});
/// p-norms of the differences of all pairs of rows: (..., P, M) and (..., R, M) to (..., P, R).
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2.0);

/// Einstein's summation: "bij,bjk->bik". Each letter names an axis; axes that the result lacks are summed. "..." stands
/// for axes that broadcast, and a letter twice in one operand for its diagonal; without "->" the letters that occur
/// once form the result, in alphabetical order. Operands are contracted pairwise as batched matrix products, the pair
/// with the smallest result first. Throws ValueError for an invalid equation, ShapeError for sizes that do not fit.
Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands);

/// Arguments of rotary_embedding.
struct RotaryOptions {
  double base = 10000.0;     ///< decides how slowly the last pairs rotate
  int64_t offset = 0;        ///< position of the first element of the axis T
  bool interleaved = false;  ///< neighbouring channels form the pairs, else channels i and i + E / 2
};
/// Rotates pairs of channels of x (..., T, E) by angles that grow with the position: pair i of E / 2 at position t by
/// (t + offset) * base^(-2 i / E) radians. Su et al. 2021.
Tensor rotary_embedding(const Tensor& x, const RotaryOptions& options = {});

}  // namespace levin
