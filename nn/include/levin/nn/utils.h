#pragma once
// Parameters as one vector, and batch normalization folded into the layer before it.

#include <levin/autograd/modes.h>
#include <levin/nn/convolution.h>
#include <levin/nn/layers.h>
#include <levin/nn/normalization.h>

namespace levin::nn {

/// Returns the elements of all parameters, one after the other, (n); gradients flow back to the parameters.
Tensor parameters_to_vector(std::span<const Tensor> parameters);
/// Copies the elements of such a vector into the parameters; throws ShapeError for another number of them.
void vector_to_parameters(const Tensor& vector, std::span<const Tensor> parameters);

/// The result of fuse_conv_bn_weights.
struct FusedWeights {
  Tensor weight, bias;  ///< of the shape of the given weight, and (O)
};
/// Returns the weight (O, ...) and bias of a layer that computes `norm` of the given layer's outputs in evaluation;
/// `transposed`: the weight is (I, O, ...). Throws ValueError for a norm without running statistics.
FusedWeights fuse_conv_bn_weights(const Tensor& weight, const Tensor& bias, const BatchNorm& norm,
                                  bool transposed = false);
/// Returns the convolution that computes norm(conv(x)) in evaluation, in evaluation mode, with conv's device and dtype.
/// conv is a Conv1d, Conv2d or Conv3d, or a ConvTranspose of one group; throws ValueError for a norm without running
/// statistics and for a transposed convolution of several groups.
template <class C>
C fuse_conv_bn_eval(const C& conv, const BatchNorm& norm) {
  constexpr bool transposed = requires { conv.options.output_padding; };
  if (transposed && conv.options.groups != 1)
    throw ValueError("[fuse_conv_bn_eval] a transposed convolution of several groups cannot be fused.");
  auto options = conv.options;
  options.bias = true;
  C fused(conv.in_channels, conv.out_channels, conv.kernel_size, options);
  const auto [weight, bias] = fuse_conv_bn_weights(conv.weight, conv.bias, norm, transposed);
  no_grad guard;
  fused.to(conv.weight.device(), conv.weight.dtype());
  fused.weight.copy_(weight);
  fused.bias.copy_(bias);
  fused.eval();
  return fused;
}

}  // namespace levin::nn
