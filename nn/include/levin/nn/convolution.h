#pragma once
// Convolution layers. Names, defaults and initial values are PyTorch's.

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/nn/layer.h>
#include <levin/nn/quantization.h>

namespace levin::nn {

template <std::size_t N>
struct ConvOptions {
  Tuple<N> stride = 1;
  Tuple<N> padding = 0;
  Tuple<N> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  PadMode padding_mode = PadMode::constant;  ///< the values of the padding; `constant` is zeros
  bool same = false;                         ///< pads so that stride 1 keeps the size, instead of by `padding`
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

/// Base of convolutions over N spatial axes: (B, C, ...) to (B, O, ...), or (C, ...) to (O, ...).
template <class Derived, std::size_t N>
class Conv : public Layer<Derived> {
 public:
  using Options = ConvOptions<N>;
  Conv(int64_t in_channels, int64_t out_channels, Tuple<N> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  void reset_parameters();
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(in_channels, out_channels, kernel_size, options);
  }

  const int64_t in_channels, out_channels;
  const Tuple<N> kernel_size;
  const Options options;
  Parameter& weight;  ///< (O, C / groups, k...)
  Parameter& bias;    ///< (O) or undefined
};

class Conv1d : public Conv<Conv1d, 1> {
 public:
  using Conv::Conv;
};
class Conv2d : public Conv<Conv2d, 2> {
 public:
  using Conv::Conv;
  std::string extra_repr() const override;

  Int8Weight int8{};  ///< set by quantize_
};
class Conv3d : public Conv<Conv3d, 3> {
 public:
  using Conv::Conv;
};

template <std::size_t N>
struct ConvTransposeOptions {
  Tuple<N> stride = 1;
  Tuple<N> padding = 0;
  Tuple<N> output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Tuple<N> dilation = 1;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

/// Base of the gradients of convolutions with respect to their inputs, as layers: an axis of size n becomes
/// (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
template <class Derived, std::size_t N>
class ConvTranspose : public Layer<Derived> {
 public:
  using Options = ConvTransposeOptions<N>;
  ConvTranspose(int64_t in_channels, int64_t out_channels, Tuple<N> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  void reset_parameters();
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(in_channels, out_channels, kernel_size, options);
  }

  const int64_t in_channels, out_channels;
  const Tuple<N> kernel_size;
  const Options options;
  Parameter& weight;  ///< (C, O / groups, k...)
  Parameter& bias;
};

class ConvTranspose1d : public ConvTranspose<ConvTranspose1d, 1> {
 public:
  using ConvTranspose::ConvTranspose;
};
class ConvTranspose2d : public ConvTranspose<ConvTranspose2d, 2> {
 public:
  using ConvTranspose::ConvTranspose;
};
class ConvTranspose3d : public ConvTranspose<ConvTranspose3d, 3> {
 public:
  using ConvTranspose::ConvTranspose;
};

}  // namespace levin::nn
