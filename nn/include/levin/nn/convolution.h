#pragma once
// Convolution layers. Names, defaults and initial values are PyTorch's.

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/nn/layer.h>
#include <levin/nn/quantization.h>

namespace levin::nn {

/// Options of a convolution over N spatial axes.
template <std::size_t N>
struct ConvOptions {
  Tuple<N> stride = 1;                       ///< distance of neighbouring windows, in elements
  Tuple<N> padding = 0;                      ///< elements added before and after each axis
  Tuple<N> dilation = 1;                     ///< distance of the elements of a window
  int64_t groups = 1;                        ///< of channels: each group of outputs reads one group of inputs
  bool bias = true;                          ///< adds a learned number to each output channel
  PadMode padding_mode = PadMode::constant;  ///< the values of the padding; `constant` is zeros
  bool same = false;                         ///< pads so that stride 1 keeps the size, instead of by `padding`
};
/// Options of Conv1d, Conv2d and Conv3d.
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

/// Base of convolutions over N spatial axes (cross-correlations, as in PyTorch): (B, C, ...) to (B, O, ...), or
/// (C, ...) to (O, ...), of one floating dtype. An axis of size n becomes floor((n + 2 padding - dilation (k - 1) - 1)
/// / stride) + 1. in_channels is C, out_channels is O, and kernel_size has one number k for each spatial axis. forward
/// throws ShapeError for an input that does not fit.
template <class Derived, std::size_t N>
class Conv : public Layer<Derived> {
 public:
  using Options = ConvOptions<N>;
  /// Throws ValueError for sizes below 1, channels that `groups` does not divide, and `same` unless the stride
  /// is 1.
  Conv(int64_t in_channels, int64_t out_channels, Tuple<N> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  /// Initializes weight and bias anew, uniformly in +-1 / sqrt(fan in), where the fan in is C / groups times the
  /// kernel's elements.
  void reset_parameters();
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(in_channels, out_channels, kernel_size, options); }

  const int64_t in_channels, out_channels;
  const Tuple<N> kernel_size;
  const Options options;
  Parameter& weight;  ///< (O, C / groups, k...)
  Parameter& bias;    ///< (O) or undefined
};

/// Convolution of lines, (B, C, L) or (C, L).
class Conv1d : public Conv<Conv1d, 1> {
 public:
  using Conv::Conv;
};
/// Convolution of images, (B, C, H, W) or (C, H, W).
class Conv2d : public Conv<Conv2d, 2> {
 public:
  using Conv::Conv;
  std::string extra_repr() const override;

  Int8Weight int8{};  ///< set by quantize_
};
/// Convolution of volumes, (B, C, D, H, W) or (C, D, H, W).
class Conv3d : public Conv<Conv3d, 3> {
 public:
  using Conv::Conv;
};

/// Options of a transposed convolution over N spatial axes. `stride`, `padding` and `dilation` are those of the
/// convolution whose gradient it is.
template <std::size_t N>
struct ConvTransposeOptions {
  Tuple<N> stride = 1;
  Tuple<N> padding = 0;
  Tuple<N> output_padding = 0;  ///< elements added at the end of each axis of the result; below stride or dilation
  int64_t groups = 1;           ///< of channels: each group of outputs reads one group of inputs
  bool bias = true;             ///< adds a learned number to each output channel
  Tuple<N> dilation = 1;
};
/// Options of ConvTranspose1d, ConvTranspose2d and ConvTranspose3d.
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

/// Base of the gradients of convolutions with respect to their inputs, as layers: (B, C, ...) to (B, O, ...), or
/// (C, ...) to (O, ...), of one floating dtype. An axis of size n becomes (n - 1) stride - 2 padding + dilation (k - 1)
/// + output_padding + 1. in_channels is C, out_channels is O, and kernel_size has one number k for each spatial axis.
/// forward throws ShapeError for an input that does not fit.
template <class Derived, std::size_t N>
class ConvTranspose : public Layer<Derived> {
 public:
  using Options = ConvTransposeOptions<N>;
  /// Throws ValueError for sizes below 1 and for channels that `groups` does not divide.
  ConvTranspose(int64_t in_channels, int64_t out_channels, Tuple<N> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  /// Initializes weight and bias anew, uniformly in +-1 / sqrt(fan in), where the fan in is O / groups times the
  /// kernel's elements, as in PyTorch.
  void reset_parameters();
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(in_channels, out_channels, kernel_size, options); }

  const int64_t in_channels, out_channels;
  const Tuple<N> kernel_size;
  const Options options;
  Parameter& weight;  ///< (C, O / groups, k...)
  Parameter& bias;    ///< (O) or undefined
};

/// Transposed convolution of lines, (B, C, L) or (C, L).
class ConvTranspose1d : public ConvTranspose<ConvTranspose1d, 1> {
 public:
  using ConvTranspose::ConvTranspose;
};
/// Transposed convolution of images, (B, C, H, W) or (C, H, W).
class ConvTranspose2d : public ConvTranspose<ConvTranspose2d, 2> {
 public:
  using ConvTranspose::ConvTranspose;
};
/// Transposed convolution of volumes, (B, C, D, H, W) or (C, D, H, W).
class ConvTranspose3d : public ConvTranspose<ConvTranspose3d, 3> {
 public:
  using ConvTranspose::ConvTranspose;
};

}  // namespace levin::nn
