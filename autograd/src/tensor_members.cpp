// Members of Tensor that forward to the free functions.

#include <levin/autograd/ops.h>

namespace levin {

Tensor Tensor::detach() const { return levin::detach(*this); }
Tensor Tensor::reshape(const Shape& sizes) const { return levin::reshape(*this, sizes); }
Tensor Tensor::view(const Shape& sizes) const { return levin::view(*this, sizes); }
Tensor Tensor::flatten(int64_t start, int64_t end) const { return levin::flatten(*this, start, end); }
Tensor Tensor::transpose(int64_t a, int64_t b) const { return levin::transpose(*this, a, b); }
Tensor Tensor::t() const { return levin::t(*this); }
Tensor Tensor::permute(const Shape& axes) const { return levin::permute(*this, axes); }
Tensor Tensor::narrow(int64_t axis, int64_t start, int64_t length) const {
  return levin::narrow(*this, axis, start, length);
}
Tensor Tensor::slice(int64_t axis, const Slice& s) const { return levin::slice(*this, axis, s); }
Tensor Tensor::select(int64_t axis, int64_t i) const { return levin::select(*this, axis, i); }
Tensor Tensor::expand(const Shape& sizes) const { return levin::expand(*this, sizes); }
Tensor Tensor::squeeze() const { return levin::squeeze(*this); }
Tensor Tensor::squeeze(int64_t axis) const { return levin::squeeze(*this, axis); }
Tensor Tensor::unsqueeze(int64_t axis) const { return levin::unsqueeze(*this, axis); }
Tensor Tensor::unfold(int64_t axis, int64_t size, int64_t step) const { return levin::unfold(*this, axis, size, step); }
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t axis) const { return levin::chunk(*this, chunks, axis); }
std::vector<Tensor> Tensor::split(int64_t size, int64_t axis) const { return levin::split(*this, size, axis); }
std::vector<Tensor> Tensor::split(const std::vector<int64_t>& sizes, int64_t axis) const {
  return levin::split(*this, sizes, axis);
}
std::vector<Tensor> Tensor::unbind(int64_t axis) const { return levin::unbind(*this, axis); }
Tensor Tensor::index(std::span<const Index> indices) const { return levin::index(*this, indices); }

Tensor Tensor::contiguous() const { return levin::contiguous(*this); }
Tensor Tensor::clone() const { return levin::clone(*this); }
Tensor Tensor::to(DType type) const { return levin::to(*this, type); }
Tensor Tensor::to(Device where) const { return levin::to(*this, where); }
Tensor Tensor::to(Device where, DType type) const { return levin::to(levin::to(*this, where), type); }

Tensor Tensor::operator-() const { return levin::neg(*this); }
Tensor Tensor::abs() const { return levin::abs(*this); }
Tensor Tensor::exp() const { return levin::exp(*this); }
Tensor Tensor::log() const { return levin::log(*this); }
Tensor Tensor::sqrt() const { return levin::sqrt(*this); }
Tensor Tensor::square() const { return levin::square(*this); }
Tensor Tensor::pow(const Scalar& exponent) const { return levin::pow(*this, exponent); }
Tensor Tensor::relu() const { return levin::relu(*this); }
Tensor Tensor::sigmoid() const { return levin::sigmoid(*this); }
Tensor Tensor::tanh() const { return levin::tanh(*this); }
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return levin::clamp(*this, min, max);
}
Tensor Tensor::matmul(const Tensor& other) const { return levin::matmul(*this, other); }
Tensor Tensor::softmax(int64_t axis) const { return levin::softmax(*this, axis); }
Tensor Tensor::log_softmax(int64_t axis) const { return levin::log_softmax(*this, axis); }
Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& value) const {
  return levin::masked_fill(*this, mask, value);
}
Tensor Tensor::eq(const Tensor& other) const { return levin::eq(*this, other); }
Tensor Tensor::eq(const Scalar& other) const { return levin::eq(*this, other); }

Tensor Tensor::sum() const { return levin::sum(*this); }
Tensor Tensor::sum(const Shape& axes, bool keepdim) const { return levin::sum(*this, axes, keepdim); }
Tensor Tensor::mean() const { return levin::mean(*this); }
Tensor Tensor::mean(const Shape& axes, bool keepdim) const { return levin::mean(*this, axes, keepdim); }
Tensor Tensor::max() const { return levin::max(*this); }
Tensor Tensor::min() const { return levin::min(*this); }
Tensor Tensor::argmax(std::optional<int64_t> axis, bool keepdim) const { return levin::argmax(*this, axis, keepdim); }
Tensor Tensor::any() const { return levin::any(*this); }
Tensor Tensor::all() const { return levin::all(*this); }

}  // namespace levin
