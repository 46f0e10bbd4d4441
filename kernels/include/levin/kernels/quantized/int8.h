#pragma once
// Contracts of products with int8 weights. A weight is symmetric with one scale an output channel o: it stands for
// scale[o] * weight[o], with weight in [-127, 127].

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes out[m] = scale * (weight x[m]) + bias. out and x are (M, N) and (M, K), float32; weight is (N, K), int8;
/// scale (N) and bias (N), which may be absent (null pointer), are float32. All are contiguous, and out overlaps no
/// input. Bytes: one pass over all; flops: 2 M N K.
///
/// linear_int8_weight_only multiplies and accumulates in float32. linear_int8_dynamic quantizes each row x[m] to uint8:
/// with low = min(x[m], 0) and high = max(x[m], 0) the step is s = max(high / 255 - low / 255, FLT_MIN), the zero point
/// z = round(-low / s), and q = round(x / s) + z, limited to 0..255; round is to the nearest, ties to even. Then
/// out = (sum of (q - z) weight) * (s * scale) + bias, where the sum is exact in int32, so K is at most 65,536. A row
/// with a value that is not finite gives NaN.
struct LinearInt8Args {
  TensorView out, x, weight, scale, bias;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(out, x, weight, scale, bias), 2 * count(out) * static_cast<double>(x.size(1)), DType::f32};
  }
};
extern constinit Kernel<void(const LinearInt8Args&, Stream&)> linear_int8_weight_only;
extern constinit Kernel<void(const LinearInt8Args&, Stream&)> linear_int8_dynamic;

/// Computes the cross-correlation of x (B, C, H, W) with an int8 weight (O, C / groups, kh, kw): out (B, O, H', W').
/// Each image is quantized as a row of linear_int8_dynamic; padding is an exact zero. The sums have at most 65,536
/// terms. out, x, scale (O) and bias (O), which may be absent, are float32. All are contiguous, and out overlaps no
/// input. Bytes: one pass over all; flops: 2 an output element and term.
struct Conv2dInt8Args {
  TensorView out, x, weight, scale, bias;
  int64_t stride_h = 1, stride_w = 1;      ///< 1 or more
  int64_t pad_h = 0, pad_w = 0;            ///< zeros on both sides of an axis
  int64_t dilation_h = 1, dilation_w = 1;  ///< distance between the weight's taps
  int64_t groups = 1;                      ///< divides C and O

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    const double terms = static_cast<double>(weight.size(1) * weight.size(2) * weight.size(3));
    return {bytes(out, x, weight, scale, bias), 2 * count(out) * terms, DType::f32};
  }
};
extern constinit Kernel<void(const Conv2dInt8Args&, Stream&)> conv2d_int8_dynamic;

}  // namespace levin::kernels
