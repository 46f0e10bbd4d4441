// Members of Tensor that forward to the free functions.

#include <levin/autograd/ops.h>

namespace levin {

#define LEVIN_METHOD(result, name, parameters, ...) \
  result Tensor::name parameters const { return levin::name(*this __VA_OPT__(, ) __VA_ARGS__); }
#include <levin/core/tensor_methods.h>

Tensor Tensor::index(std::span<const Index> indices) const { return levin::index(*this, indices); }

Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return levin::where(condition, *this, other);
}
Tensor Tensor::where(const Tensor& condition, const Scalar& other) const {
  return levin::where(condition, *this, other);
}

Tensor Tensor::to(DType type) const { return levin::to(*this, type); }
Tensor Tensor::to(Device where) const { return levin::to(*this, where); }
Tensor Tensor::to(Device where, DType type) const { return levin::to(levin::to(*this, where), type); }

Tensor Tensor::new_empty(const Shape& sizes) const { return empty(sizes, {.dtype = dtype(), .device = device()}); }
Tensor Tensor::new_zeros(const Shape& sizes) const { return zeros(sizes, {.dtype = dtype(), .device = device()}); }
Tensor Tensor::new_ones(const Shape& sizes) const { return ones(sizes, {.dtype = dtype(), .device = device()}); }
Tensor Tensor::new_full(const Shape& sizes, const Scalar& value) const {
  return full(sizes, value, {.dtype = dtype(), .device = device()});
}

Tensor Tensor::operator-() const { return levin::neg(*this); }

}  // namespace levin
