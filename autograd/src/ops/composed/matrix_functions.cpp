// Norms and the exponential of matrices, composed of products, reductions and singular values.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/linalg.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

#include <cmath>
#include <limits>

namespace levin::linalg {

using namespace ops;

namespace {

void require_matrices(const char* op, const Tensor& a) {
  check_floating(op, a, "a");
  if (a.dim() < 2) fail<ShapeError>("[{}] a is {}, expected is (..., M, N).", op, a.sizes());
}

Tensor with_axes(const Tensor& norm, bool keepdim) { return keepdim ? unsqueeze(unsqueeze(norm, -1), -1) : norm; }

}  // namespace

Tensor vector_norm(const Tensor& x, double p, const Axes& axes, bool keepdim) { return norm(x, p, axes, keepdim); }

Tensor matrix_norm(const Tensor& a, MatrixNorm ord, bool keepdim) {
  require_matrices("matrix_norm", a);
  if (ord == MatrixNorm::frobenius) return norm(a, 2.0, Axes{-2, -1}, keepdim);
  return with_axes(sum(svdvals(a), -1), keepdim);
}

Tensor matrix_norm(const Tensor& a, double ord, bool keepdim) {
  require_matrices("matrix_norm", a);
  const double size = std::abs(ord);
  if (size != 1 && size != 2 && size != std::numeric_limits<double>::infinity())
    fail<ValueError>("[matrix_norm] ord is {}. Give 1, 2 or infinity, of either sign, or a MatrixNorm.", ord);
  const Tensor sums = size == 2 ? svdvals(a) : sum(abs(a), size == 1 ? -2 : -1);
  return with_axes(ord > 0 ? amax(sums, -1) : amin(sums, -1), keepdim);
}

Tensor cond(const Tensor& a) {
  const Tensor s = svdvals(a);
  return div(select(s, -1, 0), select(s, -1, -1));
}

Tensor vecdot(const Tensor& a, const Tensor& b, int64_t axis) { return sum(mul(a, b), axis); }

Tensor matrix_exp(const Tensor& a) {
  require_matrices("matrix_exp", a);
  if (a.size(-1) != a.size(-2)) fail<ShapeError>("[matrix_exp] needs square matrices, a is {}.", a.sizes());
  if (is_16_bit(a)) return matrix_exp(a.to(kFloat32)).to(a.dtype());
  if (a.numel() == 0) return clone(a);
  // A Taylor series of degree 18 of a / 2^n, whose norm is at most 1 / 2, and n squares of that.
  const double size = amax(sum(abs(a.detach()), -2)).item<double>();
  const int squares = size > 0.5 && std::isfinite(size) ? static_cast<int>(std::ceil(std::log2(size))) + 1 : 0;
  const Tensor x = mul(a, std::ldexp(1.0, -squares)), one = eye(a.size(-1), like(a));
  Tensor y = add(one, div(x, 18.0));
  for (int k = 17; k >= 1; --k) y = add(one, div(matmul(x, y), static_cast<double>(k)));
  for (int i = 0; i < squares; ++i) y = matmul(y, y);
  return y;
}

}  // namespace levin::linalg
