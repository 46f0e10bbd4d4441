#pragma once
// Convolution and pooling over images (B, C, H, W), or one image (C, H, W).

#include <levin/core/tensor.h>

#include <array>

namespace levin {

/// One number for both axes, or {height, width}.
struct Pair {
  Pair(int64_t both) : h(both), w(both) {}                        // NOLINT: implicit
  Pair(int both) : h(both), w(both) {}                            // NOLINT
  Pair(int64_t height, int64_t width) : h(height), w(width) {}
  int64_t h, w;
  friend bool operator==(const Pair&, const Pair&) = default;
};

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  int64_t groups = 1;
};
/// Computes the cross-correlation: x (B, C, H, W) or (C, H, W), weight (O, C / groups, kh, kw), bias (O) or undefined,
/// all of one floating dtype. Returns (B, O, H', W') or (O, H', W').
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});

struct ConvTranspose2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair output_padding = 0;
  int64_t groups = 1;
  Pair dilation = 1;
};
/// Computes the gradient of conv2d with respect to its input as an operation of its own:
/// x (B, C, H, W) or (C, H, W), weight (C, O / groups, kh, kw).
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});

struct MaxPool2dOptions {
  std::optional<Pair> stride{};  ///< defaults to the kernel's size
  Pair padding = 0;
  Pair dilation = 1;
  bool ceil_mode = false;
};
Tensor max_pool2d(const Tensor& x, Pair kernel, const MaxPool2dOptions& options = {});

struct AvgPool2dOptions {
  std::optional<Pair> stride{};
  Pair padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
Tensor avg_pool2d(const Tensor& x, Pair kernel, const AvgPool2dOptions& options = {});

}  // namespace levin
