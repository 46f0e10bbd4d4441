#include <levin/nn/activation.h>

#include <levin/autograd/ops/creation.h>

#include <fmt/format.h>

namespace levin::nn {

std::string detail::arguments_text(std::initializer_list<std::pair<const char*, double>> arguments) {
  std::string text;
  for (const auto& [name, value] : arguments) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string GELU::extra_repr() const {
  return fmt::format("approximate='{}'", approximate == Approximate::none ? "none" : "tanh");
}

PReLU::PReLU(int64_t num_parameters, const Options& options)
    : weight(register_parameter("weight", full({num_parameters}, options.init, {.dtype = default_dtype()}))) {}
std::string PReLU::extra_repr() const { return fmt::format("num_parameters={}", weight.numel()); }

}  // namespace levin::nn
