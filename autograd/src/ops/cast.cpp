// Type and device conversion, copies.

#include "elementwise/common.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/kernels/copy.h>

namespace levin {

using namespace ops;

namespace {

/// Returns the values of x in type t, contiguous, on x's device.
Tensor converted(const Tensor& x, DType t) {
  Tensor y = fresh(x.sizes(), t, x.device());
  Stream stream = current_stream(x.device());
  kernels::copy({y.tensor_view(), x.tensor_view()}, stream);
  return y;
}

Grads pass_on(Context&, const Tensor& g) { return {g}; }

}  // namespace

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = converted(x, dtype);
  record("to", y, {x}, [](Context& k, const Tensor& g) -> Grads { return {to(g, k.input(0).dtype)}; });
  return y;
}

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
  record("to_device", y, {x}, [](Context& k, const Tensor& g) -> Grads { return {to(g, k.input(0).device)}; });
  return y;
}

Tensor clone(const Tensor& x) {
  Tensor y = converted(x, x.dtype());
  record("clone", y, {x}, pass_on);
  return y;
}

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = converted(x, x.dtype());
  record("contiguous", y, {x}, pass_on);
  return y;
}

}  // namespace levin
