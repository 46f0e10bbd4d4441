#include <levin/nn/convolution.h>

#include "layer_checks.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/quantized.h>

#include <array>

namespace levin::nn {

namespace {

/// Calls the function of the operation for N axes with its options.
Tensor convolve(const Tensor& x, const Conv1d& layer, const ConvOptions<1>& o, Tuple<1> padding) {
  return conv1d(x, layer.weight, layer.bias,
                {.stride = o.stride, .padding = padding, .dilation = o.dilation, .groups = o.groups});
}
Tensor convolve(const Tensor& x, const Conv2d& layer, const ConvOptions<2>& o, Tuple<2> padding) {
  const Tensor &weight = layer.weight, &bias = layer.bias;
  if (layer.int8) {
    const levin::Conv2dOptions options{o.stride, padding, o.dilation, o.groups};
    return layer.int8.mode == QuantizeMode::dynamic_int8
               ? conv2d_int8_dynamic(x, weight, layer.int8.scale, bias, options)
               : conv2d_int8_weight_only(x, weight, layer.int8.scale, bias, options);
  }
  return conv2d(x, weight, bias, {.stride = o.stride, .padding = padding, .dilation = o.dilation, .groups = o.groups});
}
Tensor convolve(const Tensor& x, const Conv3d& layer, const ConvOptions<3>& o, Tuple<3> padding) {
  return conv3d(x, layer.weight, layer.bias,
                {.stride = o.stride, .padding = padding, .dilation = o.dilation, .groups = o.groups});
}

#define LEVIN_TRANSPOSED_OPTIONS                                                                      \
  {                                                                                                   \
    .stride = o.stride, .padding = o.padding, .output_padding = o.output_padding, .groups = o.groups, \
    .dilation = o.dilation                                                                            \
  }
Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTransposeOptions<1>& o) {
  return conv_transpose1d(x, weight, bias, LEVIN_TRANSPOSED_OPTIONS);
}
Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTransposeOptions<2>& o) {
  return conv_transpose2d(x, weight, bias, LEVIN_TRANSPOSED_OPTIONS);
}
Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTransposeOptions<3>& o) {
  return conv_transpose3d(x, weight, bias, LEVIN_TRANSPOSED_OPTIONS);
}
#undef LEVIN_TRANSPOSED_OPTIONS

template <std::size_t N>
Tensor conv_weight(const char* layer, int64_t in, int64_t out, int64_t groups, const Tuple<N>& kernel,
                   bool transposed) {
  require_positive(layer, "in_channels", in);
  require_positive(layer, "out_channels", out);
  require_positive(layer, "groups", groups);
  if (in % groups != 0 || out % groups != 0)
    throw ValueError(
        fmt::format("[{}] {} input and {} output channels do not divide into {} groups.", layer, in, out, groups));
  const char* const names[] = {"the kernel's depth", "the kernel's height", "the kernel's width"};
  Shape sizes = transposed ? Shape{in, out / groups} : Shape{out, in / groups};
  for (std::size_t i = 0; i < N; ++i) {
    require_positive(layer, names[3 - N + i], kernel[i]);
    sizes.push_back(kernel[i]);
  }
  return empty(sizes);
}

template <std::size_t N>
std::string name_of_conv(const char* kind) {
  return fmt::format("{}{}d", kind, N);
}

template <class L, std::size_t N>
std::string conv_repr(const L& l, const Tuple<N>& output_padding) {
  std::string text = fmt::format("{}, {}, kernel_size={}, stride={}", l.in_channels, l.out_channels,
                                 tuple_text(l.kernel_size), tuple_text(l.options.stride));
  if (l.options.padding != Tuple<N>(0)) text += ", padding=" + tuple_text(l.options.padding);
  if (l.options.dilation != Tuple<N>(1)) text += ", dilation=" + tuple_text(l.options.dilation);
  if (output_padding != Tuple<N>(0)) text += ", output_padding=" + tuple_text(output_padding);
  if (l.options.groups != 1) text += fmt::format(", groups={}", l.options.groups);
  if (!l.options.bias) text += ", bias=False";
  return text;
}

const char* mode_name(PadMode mode) {
  return mode == PadMode::reflect ? "reflect" : mode == PadMode::replicate ? "replicate" : "circular";
}

}  // namespace

template <class Derived, std::size_t N>
Conv<Derived, N>::Conv(int64_t in, int64_t out, Tuple<N> kernel, const Options& o)
    : in_channels(in),
      out_channels(out),
      kernel_size(kernel),
      options(o),
      weight(this->register_parameter("weight",
                                      conv_weight(name_of_conv<N>("Conv").c_str(), in, out, o.groups, kernel, false))),
      bias(this->register_parameter("bias", o.bias ? empty({out}) : Tensor())) {
  if (o.same && o.stride != Tuple<N>(1))
    throw ValueError(fmt::format("[{}] same keeps the size for stride 1 only, and stride is {}.",
                                 name_of_conv<N>("Conv"), tuple_text(o.stride)));
  reset_parameters();
}

template <class Derived, std::size_t N>
void Conv<Derived, N>::reset_parameters() {
  reset_weight_and_bias(weight, bias);
}

template <class Derived, std::size_t N>
Tensor Conv<Derived, N>::forward(const Tensor& x) {
  if (!options.same && options.padding_mode == PadMode::constant)
    return convolve(x, static_cast<const Derived&>(*this), options, options.padding);
  Shape pads;
  for (std::size_t i = N; i-- > 0;)
    for (int side = 0; side < 2; ++side) pads.push_back(options.padding[i]);
  if (options.same) pads = same_padding(kernel_size, options.dilation);
  return convolve(pad(x, pads, options.padding_mode), static_cast<const Derived&>(*this), options, 0);
}

template <class Derived, std::size_t N>
std::string Conv<Derived, N>::extra_repr() const {
  std::string text = conv_repr(*this, Tuple<N>(0));
  if (options.same) text += ", padding=same";
  if (options.padding_mode != PadMode::constant)
    text += fmt::format(", padding_mode={}", mode_name(options.padding_mode));
  return text;
}

std::string Conv2d::extra_repr() const {
  return Conv::extra_repr() + (int8 ? ", " + to_string(int8.mode) : std::string());
}

template <class Derived, std::size_t N>
ConvTranspose<Derived, N>::ConvTranspose(int64_t in, int64_t out, Tuple<N> kernel, const Options& o)
    : in_channels(in),
      out_channels(out),
      kernel_size(kernel),
      options(o),
      weight(this->register_parameter(
          "weight", conv_weight(name_of_conv<N>("ConvTranspose").c_str(), in, out, o.groups, kernel, true))),
      bias(this->register_parameter("bias", o.bias ? empty({out}) : Tensor())) {
  reset_parameters();
}

template <class Derived, std::size_t N>
void ConvTranspose<Derived, N>::reset_parameters() {
  reset_weight_and_bias(weight, bias);
}

template <class Derived, std::size_t N>
Tensor ConvTranspose<Derived, N>::forward(const Tensor& x) {
  return convolve(x, weight, bias, options);
}

template <class Derived, std::size_t N>
std::string ConvTranspose<Derived, N>::extra_repr() const {
  return conv_repr(*this, options.output_padding);
}

template class Conv<Conv1d, 1>;
template class Conv<Conv2d, 2>;
template class Conv<Conv3d, 3>;
template class ConvTranspose<ConvTranspose1d, 1>;
template class ConvTranspose<ConvTranspose2d, 2>;
template class ConvTranspose<ConvTranspose3d, 3>;

}  // namespace levin::nn
