#pragma once
// Checks and conversions of inputs that operations make before they call a kernel, and the call.

#include "../errors.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/view.h>
#include <levin/kernels/kernel.h>

#include <type_traits>

namespace levin::ops {

/// Throws DTypeError unless x holds floating-point values.
inline void check_floating(const char* op, const Tensor& x, const char* name = "x") {
  if (!x.is_floating())
    fail<DTypeError>("[{}] needs floating-point values, {} is {}; convert it with {}.to(kFloat32).", op, name,
                     x.dtype(), name);
}

/// A tensor and its name in messages.
struct Argument {
  const char* name;
  const Tensor& tensor;
};

/// Throws DTypeError unless all tensors that are defined have the dtype of the first.
void check_same_dtype(const char* op, std::initializer_list<Argument> arguments);

/// Throws DeviceError unless both are on one device.
inline void check_same_device(const char* op, const Argument& a, const Argument& b) {
  if (a.tensor.device() != b.tensor.device())
    fail<DeviceError>("[{}] {} is on {}, {} on {}. Move one with x.to(device).", op, a.name, a.tensor.device(), b.name,
                      b.tensor.device());
}

/// Returns positions or class labels as int64, which kernels read; converts int32. Throws DTypeError for other types.
Tensor as_int64(const char* op, const Argument& index);

inline bool is_16_bit(const Tensor& x) { return x.dtype() == kHalf || x.dtype() == kBFloat16; }

/// Returns f(), computed without recording.
template <class F>
auto unrecorded(const F& f) {
  const no_grad guard;
  return f();
}

/// Calls a kernel on the current stream of the device.
template <class Args>
void launch(const kernels::Kernel<void(const Args&, Stream&)>& kernel, Device device,
            const std::type_identity_t<Args>& args) {
  Stream stream = current_stream(device);
  kernel(args, stream);
}

/// True if an operation on x has to go through float32: x is float16 or bfloat16, which the kernel of its device does
/// not support.
template <class Signature>
bool needs_float32(const kernels::Kernel<Signature>& kernel, const Tensor& x) {
  return is_16_bit(x) && !kernel.takes(x.device().type, x.dtype());
}

/// Converts 16-bit floats to float32; returns others, and undefined tensors, unchanged.
inline Tensor widened(const Tensor& t) { return t.defined() && is_16_bit(t) ? to(t, kFloat32) : t; }

/// Converts a result computed in float32 back to the type of its tensor; undefined stays undefined.
inline Tensor rounded(const Tensor& t, DType dtype) { return t.defined() ? to(t, dtype) : t; }

/// Returns the type of the statistics that a kernel saves for x: float32 with 16-bit floats, else x's type.
inline DType statistics_type(const Tensor& x) { return is_16_bit(x) ? kFloat32 : x.dtype(); }

/// Returns the values without history, in row-major memory; undefined stays undefined.
inline Tensor dense(const Tensor& t) {
  if (!t.defined()) return t;
  no_grad guard;
  return contiguous(detach(t));
}

/// Returns the type of sums and products: integers and bool give int64.
inline DType sum_type(DType t) { return is_floating(t) ? t : DType::i64; }

/// Returns the sizes of x without those of the last `dropped` axes.
inline Shape leading(const Tensor& x, int dropped) { return Shape(x.sizes().begin(), x.sizes().end() - dropped); }

/// Returns the sizes of both lists, one after the other.
inline Shape joined(Shape sizes, const Shape& more) {
  for (const int64_t n : more) sizes.push_back(n);
  return sizes;
}

/// Reshapes the elements of a vector to lie along an axis of `dims` axes, (1, ..., n, ..., 1).
inline Tensor along_axis(const Tensor& vector, int axis, int dims) {
  Shape sizes = Shape::filled(dims, 1);
  sizes[axis] = vector.numel();
  return reshape(vector, sizes);
}

/// Sizes seen as (outer, n, inner) around an axis; a number has one line of one element.
struct Around {
  int64_t outer = 1, n = 1, inner = 1;
};
inline Around around(const Shape& sizes, int axis) {
  Around a;
  if (sizes.empty()) return a;
  for (int i = 0; i < axis; ++i) a.outer *= sizes[i];
  a.n = sizes[axis];
  for (int i = axis + 1; i < sizes.size(); ++i) a.inner *= sizes[i];
  return a;
}

/// Returns a kernel's argument; an undefined tensor gives an empty view.
inline TensorView view_of(const Tensor& t) { return t.defined() ? t.tensor_view() : TensorView{}; }

}  // namespace levin::ops
