#pragma once
// Contracts of two-dimensional pooling. All tensors are contiguous and treated as planes: x (planes, h, w), y (planes,
// oh, ow). The window of output (i, j) covers rows i * stride_h - padding_h + p * dilation_h for p < kernel_h, and
// columns likewise; positions outside the plane are ignored. Floating types, f32 and f64 on the CPU; 16-bit sums
// accumulate in float.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Sizes of pooling: x has `planes` of (h, w), y as many of (oh, ow). kernel_h, stride_h, padding_h and dilation_h
/// place the windows along the rows, and kernel_w, stride_w, padding_w and dilation_w along the columns; all are in
/// pixels.
struct PoolGeometry {
  int64_t planes = 1, h = 1, w = 1, oh = 1, ow = 1;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;

  /// Max pooling's indices are relative to the window (p * kernel_w + q), so that a byte suffices in all common cases.
  DType index_type() const { return kernel_h * kernel_w <= 256 ? DType::u8 : DType::i32; }
};

/// Computes y = the largest element of the window, and indices (of geometry.index_type(), or absent) = its position:
/// the first of a tie, the last NaN. Every window holds an element. Bytes: x, y and indices once; kernel_h kernel_w
/// comparisons per output.
struct MaxPool2dArgs {
  TensorView y, indices, x;
  PoolGeometry geometry;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    const double window = static_cast<double>(geometry.kernel_h * geometry.kernel_w);
    return {bytes(x, y, indices), window * count(y), x.dtype};
  }
};
extern constinit Kernel<void(const MaxPool2dArgs&, Stream&)> max_pool2d;

/// Computes dx = sum of dy over the outputs whose value came from there, with the indices of max_pool2d and its
/// `geometry`. Bytes: dy, indices and dx once.
struct MaxPool2dBackwardArgs {
  TensorView dx, dy, indices;
  PoolGeometry geometry;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(dx, dy, indices), count(dy), dx.dtype};
  }
};
extern constinit Kernel<void(const MaxPool2dBackwardArgs&, Stream&)> max_pool2d_backward;

/// Computes y = the elements of x that indices select: the derivative of max_pool2d_backward. Bytes: y and indices
/// twice.
extern constinit Kernel<void(const MaxPool2dArgs&, Stream&)> max_pool2d_pick;

/// Computes y = sum of the window of `geometry` / divisor. The divisor is the number of elements of the window inside
/// the plane or, with count_include_pad, inside the padded plane. The backward reads y, the gradient of the output, and
/// writes x. Bytes: x and y once; kernel_h kernel_w flops per output.
struct AvgPool2dArgs {
  TensorView y, x;
  PoolGeometry geometry;
  bool count_include_pad = true;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    const double window = static_cast<double>(geometry.kernel_h * geometry.kernel_w);
    return {bytes(x, y), window * count(y), x.dtype};
  }
};
extern constinit Kernel<void(const AvgPool2dArgs&, Stream&)> avg_pool2d, avg_pool2d_backward;

}  // namespace levin::kernels
