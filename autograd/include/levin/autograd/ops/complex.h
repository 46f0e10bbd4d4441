#pragma once
// Complex tensors. A complex64 or complex128 tensor has the memory of a float32 or float64 tensor with a last axis of
// two, the real and the imaginary part. Its operations are compositions over that view, view_as_real(z); kernels see no
// complex type. What is accepted:
//
//   - views, x(...), clone, contiguous, copy_, to, cat, stack, flip, roll, pad with zeros, index_select and index_add
//   - add, sub, mul and div, also in place and with real tensors and numbers; neg, square, reciprocal, exp, abs, sum,
//     mean, matmul, eq and ne
//   - the functions below and those of spectral.h
//
// Everything else throws DTypeError. Gradients follow PyTorch's convention: the gradient of a real loss L with respect
// to z is dL/dRe(z) + i dL/dIm(z).

#include <levin/core/tensor.h>

namespace levin {

/// Returns the real view of shape (..., 2) of a complex tensor; it shares the memory. Throws DTypeError for real ones.
Tensor view_as_real(const Tensor& z);
/// Returns the complex view of shape (...) of a float32 or float64 tensor of shape (..., 2); it shares the memory.
/// Throws DTypeError for other types, and ShapeError unless the last axis has size 2 and stride 1, and the other
/// strides and the offset are even.
Tensor view_as_complex(const Tensor& x);

/// Returns re + i im as complex64 for float32, as complex128 for float64. The shapes broadcast; the types are equal.
Tensor complex(const Tensor& re, const Tensor& im);
/// Returns abs * (cos(angle) + i sin(angle)); arguments as of complex().
Tensor polar(const Tensor& abs, const Tensor& angle);

/// Returns a view of the real parts; of a real tensor, the tensor itself.
Tensor real(const Tensor& x);
/// Returns a view of the imaginary parts. Throws DTypeError for a real tensor.
Tensor imag(const Tensor& z);
/// Returns the conjugates, a copy (PyTorch marks a view instead); of a real tensor, the tensor itself.
Tensor conj(const Tensor& x);
/// Returns the argument in (-pi, pi]; of real numbers 0 or pi. The gradient at 0 is 0.
Tensor angle(const Tensor& x);

}  // namespace levin
