#pragma once
// Contract of the two-dimensional convolution and its two gradients: one relation between x, weight and y, of which two
// are given and the third is computed.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Relates y[b,o,i,j] = bias[o] + sum over c,p,q of x[b, c, i*stride_h - padding_h + p*dilation_h, ...] *
/// weight[o,c,p,q], within groups of channels; elements outside x count as 0. All tensors are contiguous and of one
/// floating type, f32 or f64 on the CPU; 16-bit floats accumulate in float. x (B, C, H, W), weight (O, C / groups, kh,
/// kw), bias (O) or absent, y (B, O, OH, OW). Flops: 2 B O OH OW (C / groups) kh kw for each of the three.
struct Conv2dArgs {
  TensorView x, weight, bias, y;
  /// Geometry of the formula, for rows (h) and columns (w), in pixels.
  int64_t stride_h = 1, stride_w = 1;
  int64_t padding_h = 0, padding_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;  ///< divides both numbers of channels

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    // In all three kernels, two of the three tensors are read and one is written.
    const double taps = count(weight) / static_cast<double>(std::max<int64_t>(1, weight.size(0)));
    return {bytes(x, weight, bias, y), 2 * count(y) * taps, x.dtype};
  }
};
/// Computes y.
extern constinit Kernel<void(const Conv2dArgs&, Stream&)> conv2d;
/// Computes x, the gradient of the input, from y, the gradient of the output; the size of x is given. Adds bias (C) if
/// given.
extern constinit Kernel<void(const Conv2dArgs&, Stream&)> conv2d_backward_input;
/// Computes weight, the gradient of the weight, from x and y; sums over the batch in a fixed tree.
extern constinit Kernel<void(const Conv2dArgs&, Stream&)> conv2d_backward_weight;

}  // namespace levin::kernels
