#pragma once
// Shared by the elementwise operations: result types, new tensors, kernel calls.

#include <levin/autograd/modes.h>
#include <levin/autograd/record.h>
#include <levin/kernels/elementwise.h>

namespace levin::ops {

/// Returns PyTorch's result type of two tensors: a 0-dim tensor counts only if its category (bool, integer, floating,
/// complex) is higher than that of the tensor with dimensions.
DType result_type(const Tensor& a, const Tensor& b);

/// Returns the type itself if it is floating or complex, else default_dtype().
inline DType floating_type(DType t) { return is_differentiable(t) ? t : default_dtype(); }

/// Throws DeviceError unless both are on one device.
Device common_device(const char* op, const Tensor& a, const Tensor& b);

/// Throws DTypeError for bool.
void refuse_bool(const char* op, DType t, const char* instead);

/// Returns the type itself; throws DTypeError for floating types, whose bits no operation combines.
DType bits_type(const char* op, DType t);

/// Returns new contiguous memory; the sizes are those of an existing tensor.
Tensor fresh(const Shape& sizes, DType dtype, Device device);

/// Returns a number in the type in which values of type `t` are computed.
inline TensorView number(const Scalar& value, DType t) {
  return TensorView::number(value, t == DType::f16 || t == DType::bf16 ? DType::f32 : t);
}

/// Throws DTypeError for a floating factor of integers.
void check_factor(const char* op, const Scalar& factor, DType t);

/// True if kernels, which take the parameters of integers as double, get exactly this value. Otherwise a composition of
/// operations is used, which take numbers as they are.
bool is_exact_parameter(const Scalar& value, DType t);

/// Calls the kernel on fresh memory; not recorded.
Tensor unary(const kernels::UnaryKernel& kernel, const Tensor& x, DType out, double p0 = 0, double p1 = 0);
Tensor binary(const kernels::BinaryKernel& kernel, const char* op, const Tensor& a, const Tensor& b, DType compute,
              DType out, double p0 = 1, double p1 = 0);
/// Combines x with a number; `swapped` puts the number first.
Tensor binary(const kernels::BinaryKernel& kernel, const Tensor& x, const Scalar& value, DType compute, DType out,
              double p0 = 1, bool swapped = false);
Tensor ternary(const kernels::TernaryKernel& kernel, const char* op, const Tensor& a, const Tensor& b, const Tensor& c,
               DType compute, double p0 = 1);

/// The types column of elementwise_rows.h, for functions of one tensor.
enum class Types { floating, rounding, numeric };

/// Applies relu, sigmoid or tanh, whose gradients need the result alone, in x's memory, and records it if need be.
/// Returns false, and does nothing, if the operation is another one, if x is not floating, or during a trace.
bool activate_in_place(const char* name, const kernels::UnaryKernel& kernel, const Tensor& x);

/// The tensor of y = f(x) that backward reads.
enum class Saved { nothing, x, y };
void save(Context& c, Saved saved, const Tensor& x, Tensor& y);

/// Returns zeros, for operations whose derivative is zero almost everywhere.
Grads zero_gradient(Context& c, const Tensor& g);

}  // namespace levin::ops
