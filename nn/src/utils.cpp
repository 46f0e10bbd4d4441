#include <levin/nn/utils.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <fmt/format.h>

namespace levin::nn {

Tensor parameters_to_vector(std::span<const Tensor> parameters) {
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters) parts.push_back(reshape(p, {-1}));
  return parts.empty() ? empty({0}) : cat(parts);
}

void vector_to_parameters(const Tensor& vector, std::span<const Tensor> parameters) {
  no_grad guard;
  int64_t count = 0;
  for (const Tensor& p : parameters) count += p.numel();
  if (vector.dim() != 1 || vector.numel() != count)
    throw ShapeError(fmt::format("[vector_to_parameters] the vector is {}, but the parameters have {} elements.",
                                 to_string(vector.sizes()), count));
  int64_t at = 0;
  for (const Tensor& p : parameters) {
    p.copy_(reshape(narrow(vector, 0, at, p.numel()), p.sizes()));
    at += p.numel();
  }
}

FusedWeights fuse_conv_bn_weights(const Tensor& weight, const Tensor& bias, const BatchNorm& norm, bool transposed) {
  if (!norm.running_mean.defined())
    throw ValueError("[fuse_conv_bn_weights] the norm has no running statistics, so its factors differ in each batch.");
  no_grad guard;
  Tensor factor = rsqrt(add(norm.running_var, norm.options.eps));
  if (norm.weight.defined()) factor = mul(factor, norm.weight);
  const Tensor shifted = bias.defined() ? sub(bias, norm.running_mean) : neg(norm.running_mean);
  Tensor moved = mul(shifted, factor);
  if (norm.bias.defined()) moved = add(moved, norm.bias);
  Shape sizes = Shape::filled(weight.dim(), 1);
  sizes[transposed ? 1 : 0] = factor.numel();
  return {mul(weight, reshape(factor, sizes)), moved};
}

}  // namespace levin::nn
