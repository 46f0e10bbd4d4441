#pragma once
// Contracts of the operations that work element by element.
//
// Operands broadcast to `out`'s sizes by the rules of broadcast_strides; they may have any strides and any type, which
// is converted on the fly to the type in which the values are computed. f16 and bf16 are computed in f32 and rounded
// once. `out` may have any strides without overlap; it may be exactly one of the operands (same memory, sizes and
// strides) but must not overlap one in part. An operand may be TensorView::number, which costs no memory. Work: every
// operand that is not a number is read once and `out` is written once; flops are named per group.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// out = f(x). Computed in out's type, or in x's where out is bool. Integers are accepted where said.
struct UnaryArgs {
  TensorView out, x;
  double p0 = 0.0, p1 = 0.0;

  /// Least work of a call.
  Work work(std::string_view kernel) const;
};
using UnaryKernel = Kernel<void(const UnaryArgs&, Stream&)>;

// Functions of one tensor, and activations with their gradients: elementwise_rows.h states formula and types. Functions
// of 20 flops are within 4 units in the last place. NaN stays NaN in relu and clamp.
#define LEVIN_UNARY_ROW(name, ...) extern constinit UnaryKernel name;
#define LEVIN_ACTIVATION_ROW(name, ...) extern constinit UnaryKernel name;
#include <levin/kernels/elementwise_rows.h>
// out is bool, x of any type.
extern constinit UnaryKernel isnan, isinf, isfinite, logical_not;

/// out = f(a, b), computed in `compute`.
struct BinaryArgs {
  TensorView out, a, b;
  DType compute = DType::f32;
  double p0 = 1.0, p1 = 0.0;

  /// Least work of a call.
  Work work(std::string_view kernel) const;
};
using BinaryKernel = Kernel<void(const BinaryArgs&, Stream&)>;

// Of elementwise_rows.h, which states formula and types. For bool, add is or and mul is and; NaN in either operand of
// maximum and minimum gives NaN. In the gradient of an activation, a is the gradient of its output, and b its input or
// output.
#define LEVIN_BINARY_ROW(name, ...) extern constinit BinaryKernel name;
#define LEVIN_ACTIVATION_ROW(name, ...) extern constinit BinaryKernel name##_backward;
#include <levin/kernels/elementwise_rows.h>
/// Numeric types. Quotient rounded to minus infinity, and what is left of it (sign of b). Integers refuse b = 0.
extern constinit BinaryKernel floor_divide, remainder;
/// a ^ b. Numeric types; an integer to a negative power is 0 unless a is 1 or -1. About 40 flops.
extern constinit BinaryKernel pow;
/// Angle of (b, a). Floating types.
extern constinit BinaryKernel atan2;
// out is bool, `compute` any type.
extern constinit BinaryKernel eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor;

/// out = f(a, b, c), computed in `compute`.
struct TernaryArgs {
  TensorView out, a, b, c;
  DType compute = DType::f32;
  double p0 = 1.0;

  /// Least work of a call.
  Work work(std::string_view kernel) const;
};
using TernaryKernel = Kernel<void(const TernaryArgs&, Stream&)>;

/// b where a, else c. a is bool, all types for the others; no flops.
extern constinit TernaryKernel where;
#define LEVIN_TERNARY_ROW(name, ...) extern constinit TernaryKernel name;
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin::kernels
