// The conditions that elementwise_rows.h lists: bool tensors, no gradients.

#include "../spectral/complex.h"
#include "common.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/reduce.h>

namespace levin {

using namespace ops;

namespace {

/// Complex numbers are equal if both parts are; they have no order.
Tensor compare_complex(const kernels::BinaryKernel& kernel, const Tensor& a, const Tensor& b) {
  const DType t = result_type(a, b);
  const Tensor x = view_as_real(to(a, t)), y = view_as_real(to(b, t));
  if (&kernel == &kernels::eq) return all(eq(x, y), -1);
  if (&kernel == &kernels::ne) return any(ne(x, y), -1);
  levin::detail::refuse_dtype(kernel.name(), t, "real types");
}

Tensor compare(const kernels::BinaryKernel& kernel, const Tensor& a, const Tensor& b) {
  if (any_complex(a, b)) [[unlikely]] return compare_complex(kernel, a, b);
  return binary(kernel, kernel.name(), a, b, result_type(a, b), kBool);
}

Tensor compare(const kernels::BinaryKernel& kernel, const Tensor& a, const Scalar& b) {
  return binary(kernel, a, b, b.promote_with(a.dtype()), kBool);
}

}  // namespace

#define LEVIN_OF_TENSORS(name) \
  Tensor name(const Tensor& a, const Tensor& b) { return compare(kernels::name, a, b); }
#define LEVIN_OF_NUMBER(name) \
  Tensor name(const Tensor& a, const Scalar& b) { return compare(kernels::name, a, b); }
#define LEVIN_COMPARISON_ROW(name, ...) LEVIN_OF_TENSORS(name) LEVIN_OF_NUMBER(name)
#define LEVIN_EXCHANGED_ROW(name, ...) LEVIN_OF_TENSORS(name) LEVIN_OF_NUMBER(name)
#define LEVIN_LOGICAL_ROW(name, ...) LEVIN_OF_TENSORS(name)
#define LEVIN_PROPERTY_ROW(name, ...) \
  Tensor name(const Tensor& x) { return unary(kernels::name, x, kBool); }
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin
