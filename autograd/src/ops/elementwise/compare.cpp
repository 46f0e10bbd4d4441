// Comparisons and logical operations: bool tensors, no gradients.

#include "common.h"

#include <levin/autograd/ops/elementwise.h>

namespace levin {

using namespace ops;

namespace {

Tensor compare(const kernels::BinaryKernel& kernel, const Tensor& a, const Tensor& b) {
  return binary(kernel, kernel.name(), a, b, result_type(a, b), kBool);
}

Tensor compare(const kernels::BinaryKernel& kernel, const Tensor& a, const Scalar& b) {
  return binary(kernel, a, b, b.promote_with(a.dtype()), kBool);
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare(kernels::eq, a, b); }
Tensor eq(const Tensor& a, const Scalar& b) { return compare(kernels::eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare(kernels::ne, a, b); }
Tensor ne(const Tensor& a, const Scalar& b) { return compare(kernels::ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare(kernels::lt, a, b); }
Tensor lt(const Tensor& a, const Scalar& b) { return compare(kernels::lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare(kernels::le, a, b); }
Tensor le(const Tensor& a, const Scalar& b) { return compare(kernels::le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare(kernels::gt, a, b); }
Tensor gt(const Tensor& a, const Scalar& b) { return compare(kernels::gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare(kernels::ge, a, b); }
Tensor ge(const Tensor& a, const Scalar& b) { return compare(kernels::ge, a, b); }
Tensor logical_and(const Tensor& a, const Tensor& b) { return compare(kernels::logical_and, a, b); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return compare(kernels::logical_or, a, b); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return compare(kernels::logical_xor, a, b); }
Tensor logical_not(const Tensor& x) { return unary(kernels::logical_not, x, kBool); }
Tensor isnan(const Tensor& x) { return unary(kernels::isnan, x, kBool); }
Tensor isinf(const Tensor& x) { return unary(kernels::isinf, x, kBool); }
Tensor isfinite(const Tensor& x) { return unary(kernels::isfinite, x, kBool); }

}  // namespace levin
