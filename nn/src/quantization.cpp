#include <levin/nn/quantization.h>

#include <levin/autograd/ops/quantized.h>
#include <levin/nn/layers.h>

#include <fmt/format.h>

namespace levin::nn {

namespace {

template <class L>
void quantize_layer(L& layer, QuantizeMode mode) {
  const QuantizedWeight q = quantize_weight_int8(layer.weight);
  layer.weight = Parameter("weight", q.values);
  layer.int8 = {mode, layer.register_buffer("weight_scale", q.scale)};
  layer.repeat_in_copies([mode](Module& copy) { quantize_layer(dynamic_cast<L&>(copy), mode); });
}

/// Returns the layer as an L to quantize, or null.
template <class L>
L* layer_to_quantize(const std::string& name, Module& module, const QuantizeOptions& options) {
  L* const layer = dynamic_cast<L*>(&module);
  if (!layer || (options.filter && !options.filter(name, module))) return nullptr;
  if (layer->int8)
    throw ValueError(fmt::format("[quantize_] \"{}\" ({}) is quantized already. Quantize a module in float32.", name,
                                 module.type_name()));
  for (const auto& entry : module.named_parameters(/*recurse=*/false, /*remove_duplicate=*/false))
    if (entry.first == "weight") return layer;
  throw ValueError(fmt::format("[quantize_] the weight of \"{}\" ({}) is computed from other parameters. Remove the "
                               "parametrization first.",
                               name, module.type_name()));
}

}  // namespace

std::string to_string(QuantizeMode mode) {
  return mode == QuantizeMode::dynamic_int8 ? "dynamic_int8" : "weight_only_int8";
}

QuantizeMode quantize_mode(const std::string& name) {
  for (const QuantizeMode mode : {QuantizeMode::dynamic_int8, QuantizeMode::weight_only_int8})
    if (to_string(mode) == name) return mode;
  throw ValueError(
      fmt::format("[quantize_mode] \"{}\" is no mode. Use dynamic_int8 or weight_only_int8.", name));
}

std::vector<std::string> quantize_(Module& module, const QuantizeOptions& options) {
  std::vector<std::pair<std::string, Linear*>> linear;
  std::vector<std::pair<std::string, Conv2d*>> conv;
  std::vector<std::string> names;
  for (const auto& [name, m] : module.named_modules()) {
    if (Linear* const l = layer_to_quantize<Linear>(name, *m, options)) linear.emplace_back(name, l);
    if (Conv2d* const l = layer_to_quantize<Conv2d>(name, *m, options)) conv.emplace_back(name, l);
    if ((!linear.empty() && linear.back().second == m) || (!conv.empty() && conv.back().second == m))
      names.push_back(name);
  }
  if (names.empty())
    throw ValueError(fmt::format("[quantize_] {} has no Linear or Conv2d layer{}.", module.type_name(),
                                 options.filter ? " that the filter chooses" : " to quantize"));
  for (const auto& entry : linear) quantize_layer(*entry.second, options.mode);
  for (const auto& entry : conv) quantize_layer(*entry.second, options.mode);
  return names;
}

}  // namespace levin::nn
