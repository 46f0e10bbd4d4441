#pragma once
// Quantization of trained networks for inference.
//
//   nn::quantize_(net, {.mode = nn::QuantizeMode::weight_only_int8});
//   const no_grad guard;
//   Tensor y = net.eval()(x);

#include <levin/nn/module.h>

#include <functional>
#include <string>
#include <vector>

namespace levin::nn {

/// How a layer with an int8 weight computes.
enum class QuantizeMode {
  dynamic_int8,     ///< inputs are quantized as they come, products are of integers
  weight_only_int8  ///< products are in float32
};
/// Returns the mode's name: "dynamic_int8".
std::string to_string(QuantizeMode mode);
/// Returns the mode of that name; throws ValueError for other names.
QuantizeMode quantize_mode(const std::string& name);

/// The state of a layer with an int8 weight.
struct Int8Weight {
  QuantizeMode mode = QuantizeMode::dynamic_int8;  ///< the products of this layer
  Tensor scale{};  ///< (O, 1, ...) float32, the layer's buffer "weight_scale"; undefined while the layer is in float
  explicit operator bool() const { return scale.defined(); }
};

/// Arguments of quantize_.
struct QuantizeOptions {
  QuantizeMode mode = QuantizeMode::dynamic_int8;  ///< of all layers that are quantized
  /// Returns whether the layer of that name is to be quantized; empty: each one is.
  std::function<bool(const std::string& name, const Module& layer)> filter{};
};

/// Rounds the weights of all Linear and Conv2d layers of a module, itself included, to int8 with one scale an output
/// channel, and returns the names of the layers ("" is the module itself). These compute with
/// linear_int8_dynamic, conv2d_int8_dynamic, or their weight-only forms from then on (autograd/ops/quantized.h). A
/// weight remains the layer's parameter "weight", of dtype int8, without gradient; its scale is the buffer
/// "weight_scale". A weight that another layer shares stays as it is there. State dicts, files and nn::clone keep the
/// int8 weights: to load them, quantize a module of the same structure in the same mode first. Throws ValueError for a
/// layer that is quantized already, and if there is no layer to quantize.
///
/// Names and modes are those of torchao's quantize_; the layout of the state dict is that of compressed-tensors.
std::vector<std::string> quantize_(Module& module, const QuantizeOptions& options = {});

}  // namespace levin::nn
