#pragma once
// Complex tensors in the operations that take them: each calls one of these at its entry if a result is complex.

#include <levin/autograd/ops/complex.h>
#include <levin/autograd/record.h>
#include <levin/kernels/elementwise.h>

namespace levin::ops {

/// Returns x (..., 2), a new result, as complex; it is copied if its memory has another order.
Tensor as_complex(const Tensor& x);

/// Returns the memory for a kernel: that of the parts, with a last axis of two, if x is complex.
TensorView parts_of(const Tensor& x);

/// Returns f(view_as_real(z)) as complex.
template <class F>
Tensor on_parts(const Tensor& z, F&& f) {
  return as_complex(f(view_as_real(z)));
}

/// Converts between complex and real types or between complex types. The imaginary parts are dropped with a warning.
Tensor complex_to(const Tensor& x, DType dtype);

/// Sets all elements to a real number, not recorded.
void complex_fill(const Tensor& z, const Scalar& number);

// Results of the complex type t; at least one operand is complex.
Tensor complex_add(const Tensor& a, const Tensor& b, DType t, double factor);
Tensor complex_mul(const Tensor& a, const Tensor& b, DType t);
Tensor complex_div(const Tensor& a, const Tensor& b, DType t);
Tensor complex_rdiv(const Tensor& z, const Scalar& number);
/// Returns z + number, which only changes the real parts.
Tensor complex_add(const Tensor& z, const Scalar& number);
Tensor complex_sum(const Tensor& z, const Shape& axes, bool keepdim, bool mean_of);
Tensor complex_matmul(const Tensor& a, const Tensor& b, DType t);

/// Computes the functions that complex numbers have; throws DTypeError for other kernels.
Tensor complex_unary(const kernels::UnaryKernel& kernel, const Tensor& z);

/// True if the product or sum of the two is complex.
inline bool any_complex(const Tensor& a, const Tensor& b) { return a.is_complex() || b.is_complex(); }

}  // namespace levin::ops
