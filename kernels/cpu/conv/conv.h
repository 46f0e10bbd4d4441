#pragma once
// Two-dimensional convolution (cross-correlation, as in PyTorch) on raw contiguous pointers: forward and its gradients.
// Transposed convolution uses the same three functions with the roles of x and y exchanged.

#include <cstdint>

namespace levin::kernels::cpu {

using std::int64_t;

/// Satisfies out = (in + 2 pad - dilation (kernel - 1) - 1) / stride + 1 in both directions; a transposed convolution
/// may have added `output_padding` to in, so out_h and out_w are given, not derived.
struct Conv2dShape {
  int64_t batch = 0, in_channels = 0, in_h = 0, in_w = 0;
  int64_t out_channels = 0, kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  int64_t out_h = 0, out_w = 0;

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t kernel() const { return kernel_h * kernel_w; }
  int64_t taps() const { return group_in() * kernel(); }  // products in one output
  int64_t in_plane() const { return in_h * in_w; }
  int64_t out_plane() const { return out_h * out_w; }
};

// x (B, C, H, W), w (O, C / groups, KH, KW), bias (O) or null, y (B, O, OH, OW). All functions are deterministic for
// any number of threads; results may differ in the last bits between instruction sets.

/// Computes y = x * w + bias.
void conv2d_forward(const Conv2dShape& s, const float* x, const float* w, const float* bias, float* y);
void conv2d_forward(const Conv2dShape& s, const double* x, const double* w, const double* bias, double* y);

/// Overwrites dx with the gradient of x. With y's sizes as input this is the forward of a transposed convolution.
void conv2d_backward_input(const Conv2dShape& s, const float* dy, const float* w, float* dx);
void conv2d_backward_input(const Conv2dShape& s, const double* dy, const double* w, double* dx);

/// Overwrites dw with the gradient of w. Sums run over an image's pixels or tiles, then the images of a chunk, then the
/// chunks.
void conv2d_backward_weight(const Conv2dShape& s, const float* x, const float* dy, float* dw);
void conv2d_backward_weight(const Conv2dShape& s, const double* x, const double* dy, double* dw);

}  // namespace levin::kernels::cpu
