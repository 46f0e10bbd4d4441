#pragma once
// Convolution over lines (B, C, L), images (B, C, H, W) and volumes (B, C, D, H, W), or one of them without B; pooling
// over images. Other pools are in pool.h.

#include <levin/core/tensor.h>

#include <array>
#include <concepts>

namespace levin {

/// One number for all N spatial dimensions, or N numbers in braces: {height, width}.
template <std::size_t N>
class Tuple {
 public:
  /// Takes one number for all dimensions.
  Tuple(std::integral auto all) { values_.fill(all); }  // NOLINT: implicit
  /// Takes one number for each dimension, from the first spatial axis to the last.
  template <std::integral... Values>
  requires(N > 1 && sizeof...(Values) == N) Tuple(Values... values) : values_{static_cast<int64_t>(values)...} {}

  int64_t operator[](std::size_t dimension) const { return values_[dimension]; }
  friend bool operator==(const Tuple&, const Tuple&) = default;

 private:
  std::array<int64_t, N> values_;
};

/// Arguments of conv2d.
struct Conv2dOptions {
  Tuple<2> stride = 1;    ///< distance of the windows, 1 or more
  Tuple<2> padding = 0;   ///< number of zeros before and after each axis of x
  Tuple<2> dilation = 1;  ///< distance of the elements that the kernel reads, 1 or more
  int64_t groups = 1;     ///< divides both numbers of channels; group i of the outputs reads group i of the inputs only
};
/// Computes the cross-correlation: x (B, C, H, W) or (C, H, W), weight (O, C / groups, kh, kw), bias (O) or undefined,
/// all of one floating dtype. Returns (B, O, H', W') or (O, H', W') with
/// H' = floor((H + 2 padding - dilation (kh - 1) - 1) / stride) + 1. Throws ShapeError, DTypeError and DeviceError for
/// tensors that do not fit, and ValueError for options below their range.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});

/// Arguments of conv_transpose2d: those of the conv2d of which it is the gradient, and output_padding.
struct ConvTranspose2dOptions {
  Tuple<2> stride = 1;          ///< as in Conv2dOptions; the output is about this many times larger
  Tuple<2> padding = 0;         ///< as in Conv2dOptions; it makes the output smaller
  Tuple<2> output_padding = 0;  ///< added to the output's size, at the end; smaller than stride or dilation
  int64_t groups = 1;           ///< as in Conv2dOptions
  Tuple<2> dilation = 1;        ///< as in Conv2dOptions
};
/// Computes the gradient of conv2d with respect to its input as an operation of its own: x (B, C, H, W) or (C, H, W),
/// weight (C, O / groups, kh, kw), bias (O) or undefined. Returns (B, O, H', W') or (O, H', W') with
/// H' = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1. Throws as conv2d.
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});

/// Arguments of conv1d: stride, padding, dilation and groups as in Conv2dOptions.
struct Conv1dOptions {
  Tuple<1> stride = 1;
  Tuple<1> padding = 0;
  Tuple<1> dilation = 1;
  int64_t groups = 1;
};
/// As conv2d: x (B, C, L) or (C, L), weight (O, C / groups, k).
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOptions& options = {});
/// Arguments of conv3d: stride, padding, dilation and groups as in Conv2dOptions.
struct Conv3dOptions {
  Tuple<3> stride = 1;
  Tuple<3> padding = 0;
  Tuple<3> dilation = 1;
  int64_t groups = 1;
};
/// As conv2d: x (B, C, D, H, W) or (C, D, H, W), weight (O, C / groups, kd, kh, kw); computed as kd convolutions of
/// images, which are summed.
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv3dOptions& options = {});
/// Arguments of conv_transpose1d: stride, padding, output_padding, groups and dilation as in ConvTranspose2dOptions.
struct ConvTranspose1dOptions {
  Tuple<1> stride = 1;
  Tuple<1> padding = 0;
  Tuple<1> output_padding = 0;
  int64_t groups = 1;
  Tuple<1> dilation = 1;
};
/// As conv_transpose2d: x (B, C, L) or (C, L), weight (C, O / groups, k).
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose1dOptions& options = {});
/// Arguments of conv_transpose3d: stride, padding, output_padding, groups and dilation as in ConvTranspose2dOptions.
struct ConvTranspose3dOptions {
  Tuple<3> stride = 1;
  Tuple<3> padding = 0;
  Tuple<3> output_padding = 0;
  int64_t groups = 1;
  Tuple<3> dilation = 1;
};
/// As conv_transpose2d: x (B, C, D, H, W) or (C, D, H, W), weight (C, O / groups, kd, kh, kw).
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose3dOptions& options = {});

/// Numbers of zeros before and after, as pad() takes them, with which a convolution of stride 1 keeps the input's size
/// (PyTorch's padding = "same"): pad(x, same_padding(kernel, dilation)).
template <std::size_t N>
Shape same_padding(Tuple<N> kernel, Tuple<N> dilation = 1) {
  Shape pads;
  for (std::size_t i = N; i-- > 0;) {
    const int64_t total = dilation[i] * (kernel[i] - 1);
    pads.push_back(total / 2);
    pads.push_back(total - total / 2);
  }
  return pads;
}

/// Arguments of max_pool2d.
struct MaxPool2dOptions {
  std::optional<Tuple<2>> stride{};  ///< distance of the windows; defaults to the kernel's size
  Tuple<2> padding = 0;              ///< number of positions before and after each axis; at most half of the kernel
  Tuple<2> dilation = 1;             ///< distance of the elements of a window, 1 or more
  bool ceil_mode = false;            ///< rounds sizes up: the last window may end outside of the padded image
};
/// Returns the largest element of each window of x (B, C, H, W) or (C, H, W), which must be of a floating type; padding
/// never counts, and NaN does. The result is (B, C, H', W') or (C, H', W') with
/// H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1. The first of equal elements receives the
/// gradient. Throws ShapeError, DTypeError and ValueError for arguments that do not fit.
Tensor max_pool2d(const Tensor& x, Tuple<2> kernel, const MaxPool2dOptions& options = {});

/// Arguments of avg_pool2d.
struct AvgPool2dOptions {
  std::optional<Tuple<2>> stride{};  ///< distance of the windows; defaults to the kernel's size
  Tuple<2> padding = 0;              ///< number of zeros before and after each axis; at most half of the kernel
  bool ceil_mode = false;            ///< rounds sizes up: the last window may end outside of the padded image
  bool count_include_pad = true;     ///< the divisor counts the zeros of the padding too
};
/// Returns the mean of each window of x (B, C, H, W) or (C, H, W); sizes and errors are those of max_pool2d with
/// dilation 1.
Tensor avg_pool2d(const Tensor& x, Tuple<2> kernel, const AvgPool2dOptions& options = {});

}  // namespace levin
