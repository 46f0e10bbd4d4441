#pragma once
// Products with int8 weights, for inference. A quantized weight has one scale an output channel (its first axis) and no
// zero point: it stands for scale * values. nn::quantize_ replaces the weights of layers.

#include <levin/autograd/ops/conv.h>
#include <levin/core/tensor.h>

namespace levin {

/// A weight (O, ...) rounded to int8: scale * values.
struct QuantizedWeight {
  Tensor values;  ///< int8 in [-127, 127], of the weight's shape
  Tensor scale;   ///< (O, 1, ...) float32: the greatest magnitude of each channel / 127
};
/// Rounds weight (O, ...), of a floating dtype, to int8: the scale of a channel of zeros is 1. Throws ValueError for a
/// weight with a value that is not finite.
QuantizedWeight quantize_weight_int8(const Tensor& weight);
/// Returns scale * values in float32.
Tensor dequantize_weight_int8(const Tensor& values, const Tensor& scale);

/// Computes linear(x, scale * weight, bias) from x (..., K), of a floating dtype, weight (N, K) int8, scale (N, 1) and
/// bias (N), which may be undefined, both of a floating dtype. It computes in float32, or in float64 for such an x, and
/// the result has x's dtype. x and bias have gradients. With few rows, whose product is bound by reading the weight, it
/// is faster than a float32 weight.
Tensor linear_int8_weight_only(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias = {});
/// The same, but x is quantized as well: each row to uint8 with a step and a zero point of its own, from its least and
/// greatest values (dynamic quantization; Jacob et al. 2018, "Quantization and Training of Neural Networks for
/// Efficient Integer-Arithmetic-Only Inference"). The integer sums are exact, so K is at most 65,536. A row with a
/// value that is not finite gives NaN. It has no derivative: backward throws GradError.
Tensor linear_int8_dynamic(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias = {});

/// Computes conv2d(x, scale * weight, bias) from x (B, C, H, W) or (C, H, W), weight (O, C / groups, kh, kw) int8,
/// scale (O, 1, 1, 1) and bias (O), which may be undefined. It computes in float32, or in float64 for such an x. x and
/// bias have gradients.
Tensor conv2d_int8_weight_only(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias = {},
                               const Conv2dOptions& options = {});
/// The same with each image quantized to uint8, as a row is in linear_int8_dynamic; C / groups * kh * kw is at most
/// 65,536.
Tensor conv2d_int8_dynamic(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias = {},
                           const Conv2dOptions& options = {});

}  // namespace levin
