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
  Tuple(std::integral auto all) { values_.fill(all); }  // NOLINT: implicit
  template <std::integral... Values>
  requires(N > 1 && sizeof...(Values) == N) Tuple(Values... values) : values_{static_cast<int64_t>(values)...} {}

  int64_t operator[](std::size_t dimension) const { return values_[dimension]; }
  friend bool operator==(const Tuple&, const Tuple&) = default;

 private:
  std::array<int64_t, N> values_;
};

struct Conv2dOptions {
  Tuple<2> stride = 1;
  Tuple<2> padding = 0;
  Tuple<2> dilation = 1;
  int64_t groups = 1;
};
/// Computes the cross-correlation: x (B, C, H, W) or (C, H, W), weight (O, C / groups, kh, kw), bias (O) or undefined,
/// all of one floating dtype. Returns (B, O, H', W') or (O, H', W').
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});

struct ConvTranspose2dOptions {
  Tuple<2> stride = 1;
  Tuple<2> padding = 0;
  Tuple<2> output_padding = 0;
  int64_t groups = 1;
  Tuple<2> dilation = 1;
};
/// Computes the gradient of conv2d with respect to its input as an operation of its own:
/// x (B, C, H, W) or (C, H, W), weight (C, O / groups, kh, kw).
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});

struct Conv1dOptions {
  Tuple<1> stride = 1;
  Tuple<1> padding = 0;
  Tuple<1> dilation = 1;
  int64_t groups = 1;
};
/// As conv2d: x (B, C, L) or (C, L), weight (O, C / groups, k).
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOptions& options = {});
struct Conv3dOptions {
  Tuple<3> stride = 1;
  Tuple<3> padding = 0;
  Tuple<3> dilation = 1;
  int64_t groups = 1;
};
/// As conv2d: x (B, C, D, H, W) or (C, D, H, W), weight (O, C / groups, kd, kh, kw); computed as kd convolutions of
/// images, which are summed.
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv3dOptions& options = {});
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

struct MaxPool2dOptions {
  std::optional<Tuple<2>> stride{};  ///< defaults to the kernel's size
  Tuple<2> padding = 0;
  Tuple<2> dilation = 1;
  bool ceil_mode = false;
};
Tensor max_pool2d(const Tensor& x, Tuple<2> kernel, const MaxPool2dOptions& options = {});

struct AvgPool2dOptions {
  std::optional<Tuple<2>> stride{};
  Tuple<2> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
Tensor avg_pool2d(const Tensor& x, Tuple<2> kernel, const AvgPool2dOptions& options = {});

}  // namespace levin
