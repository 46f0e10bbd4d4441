#pragma once
// Contracts of the elementwise operations.
//
// Operands broadcast to `out`'s sizes by the rules of broadcast_strides; they may have any strides and any type, and
// are converted on the fly to the type in which the values are computed. f16 and bf16 are computed in f32 and rounded
// once. `out` may have any strides without overlap; it may be exactly one of the operands (same memory, sizes and
// strides) but must not overlap one partially. An operand may be TensorView::number, which uses no memory. Work: every
// operand that is not a number is read once and `out` is written once; flops are given per group.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes out = f(x) in out's type, or in x's type if out is bool. Integers are accepted where stated. p0 and p1 are
/// parameters of f, such as the slope of leaky_relu and the bounds of clamp; the formulas of elementwise_rows.h use
/// them.
struct UnaryArgs {
  TensorView out, x;
  double p0 = 0.0, p1 = 0.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view kernel) const;
};
/// Table of an operation on one tensor.
using UnaryKernel = Kernel<void(const UnaryArgs&, Stream&)>;

// Functions of one tensor, activations, and properties, whose out is bool; elementwise_rows.h gives their formulas and
// types. Functions of 20 flops are accurate to 4 units in the last place. relu and clamp propagate NaN.
#define LEVIN_UNARY_ROW(name, ...) extern constinit UnaryKernel name;
#define LEVIN_ACTIVATION_ROW(name, ...) extern constinit UnaryKernel name;
#define LEVIN_PROPERTY_ROW(name, ...) extern constinit UnaryKernel name;
#include <levin/kernels/elementwise_rows.h>

/// Computes out = f(a, b) in type `compute`, to which a and b are converted. p0 and p1 are parameters of f: p0 is the
/// alpha of add (a + alpha b) and the delta of huber, and the gradient of an activation has those of the activation.
struct BinaryArgs {
  TensorView out, a, b;
  DType compute = DType::f32;
  double p0 = 1.0, p1 = 0.0;

  /// Returns the arguments of f(b, a).
  BinaryArgs exchanged() const { return {out, b, a, compute, p0, p1}; }
  /// Returns the minimum work of a call.
  Work work(std::string_view kernel) const;
};
/// Table of an operation on two tensors.
using BinaryKernel = Kernel<void(const BinaryArgs&, Stream&)>;

// Operations of elementwise_rows.h, which gives their formulas and types. For bool, add is "or" and mul is "and"; NaN
// in either operand of maximum and minimum gives NaN. floor_divide rounds to minus infinity, and remainder has the sign
// of b; integers refuse b = 0 (on CUDA only if b is a number). An integer to a negative power is 0 unless it is 1 or
// -1. atan2 is the angle of the point (b, a). In the gradient of an activation, a is the gradient of its output, and b
// is its input or output. Operations on bits take no floating `compute`. Comparisons and logical operations have a bool
// `out` and any type `compute`.
#define LEVIN_BINARY_ROW(name, ...) extern constinit BinaryKernel name;
#define LEVIN_BITWISE_ROW(name, ...) extern constinit BinaryKernel name;
#define LEVIN_SCALAR_ROW(name, ...) extern constinit BinaryKernel name;
#define LEVIN_ACTIVATION_ROW(name, ...) extern constinit BinaryKernel name##_backward;
#define LEVIN_COMPARISON_ROW(name, ...) extern constinit BinaryKernel name;
#define LEVIN_EXCHANGED_ROW(name, ...) extern constinit BinaryKernel name;
#define LEVIN_LOGICAL_ROW(name, ...) extern constinit BinaryKernel name;
#include <levin/kernels/elementwise_rows.h>

/// Computes out = f(a, b, c) in type `compute`. p0 is the factor `value` of addcmul and addcdiv.
struct TernaryArgs {
  TensorView out, a, b, c;
  DType compute = DType::f32;
  double p0 = 1.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view kernel) const;
};
/// Table of an operation on three tensors.
using TernaryKernel = Kernel<void(const TernaryArgs&, Stream&)>;

/// Computes out = b where a is true, else c. a is bool, the others have any type; no flops.
extern constinit TernaryKernel where;
#define LEVIN_TERNARY_ROW(name, ...) extern constinit TernaryKernel name;
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin::kernels
