// Type and device conversion, copies, checks of types.

#include "../errors.h"
#include "elementwise/common.h"
#include "spectral/complex.h"
#include "values.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/copy.h>

#include <fmt/format.h>

namespace levin {

using namespace ops;

namespace {

/// Returns the values of x in type t, contiguous, on x's device; both types are real, or equal.
Tensor converted(const Tensor& x, DType t) {
  Tensor y = fresh(x.sizes(), t, x.device());
  launch(kernels::copy, x.device(), {parts_of(y), parts_of(x)});
  return y;
}

Grads pass_on(Context&, const Tensor& g) { return {g}; }

}  // namespace

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (x.is_complex() || is_complex(dtype)) [[unlikely]] return complex_to(x, dtype);
  Tensor y = converted(x, dtype);
  LEVIN_TRACE("to", {x}, {y});
  record("to", y, {x}, [](Context& k, const Tensor& g) -> Grads { return {to(g, k.input(0).dtype)}; });
  return y;
}

namespace ops {

void check_same_dtype(const char* op, std::initializer_list<Argument> arguments) {
  const DType first = arguments.begin()->tensor.dtype();
  bool same = true;
  for (const Argument& a : arguments) same = same && (!a.tensor.defined() || a.tensor.dtype() == first);
  if (same) [[likely]]
    return;
  std::string types;
  for (const Argument& a : arguments)
    if (a.tensor.defined())
      types += fmt::format("{}{} is {}", types.empty() ? "" : ", ", a.name, name_of(a.tensor.dtype()));
  fail<DTypeError>("[{}] {}: their types have to be equal. Convert with x.to(dtype).", op, types);
}

Tensor as_int64(const char* op, const Argument& index) {
  if (index.tensor.dtype() == kInt64) return index.tensor;
  if (index.tensor.dtype() == kInt32) return to(index.tensor, kInt64);
  fail<DTypeError>("[{}] {} is {}; int32 or int64 is needed: {}.to(kInt64).", op, index.name, index.tensor.dtype(),
                   index.name);
}

}  // namespace ops

Tensor to(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  require_device(device);
  // Backends do not know each other's memory: copies between two kinds of accelerators go through the host.
  if (x.device() != kCpu && device != kCpu && x.device().type != device.type) return to(to(x, kCpu), device);
  const Tensor source = contiguous(x);
  Tensor y = fresh(x.sizes(), x.dtype(), device);
  // The backend of the device that is not the CPU moves the bytes.
  const Device mover = device.type == DeviceType::cpu ? x.device() : device;
  Stream stream = current_stream(mover);
  device_backend(mover).copy(y.raw_data(), device, source.raw_data(), source.device(), y.storage()->bytes(), stream);
  LEVIN_TRACE("identity", {x}, {y});
  record("to_device", y, {x}, [](Context& k, const Tensor& g) -> Grads { return {to(g, k.input(0).device)}; });
  return y;
}

Tensor clone(const Tensor& x) {
  Tensor y = converted(x, x.dtype());
  LEVIN_TRACE("identity", {x}, {y});
  record("clone", y, {x}, pass_on);
  return y;
}

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = converted(x, x.dtype());
  LEVIN_TRACE("identity", {x}, {y});
  record("contiguous", y, {x}, pass_on);
  return y;
}

}  // namespace levin
