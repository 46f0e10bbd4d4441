#include <levin/nn/activation.h>

#include <levin/autograd/ops/creation.h>

#include <fmt/format.h>

namespace levin::nn {

std::string detail::arguments_text(std::initializer_list<std::pair<const char*, double>> arguments) {
  std::string text;
  for (const auto& [name, value] : arguments) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  return text;
}

#define LEVIN_CONSTRUCTOR(Class, type, name) \
  Class::Class(type name##_) : name(name##_) {}
#define LEVIN_CONSTRUCTOR_OF_TWO(Class, first, second) \
  Class::Class(double first##_, double second##_) : first(first##_), second(second##_) {}
LEVIN_CONSTRUCTOR(LeakyReLU, double, negative_slope)
LEVIN_CONSTRUCTOR(ELU, double, alpha)
LEVIN_CONSTRUCTOR(CELU, double, alpha)
LEVIN_CONSTRUCTOR(Softshrink, double, lambda)
LEVIN_CONSTRUCTOR(Hardshrink, double, lambda)
LEVIN_CONSTRUCTOR(GLU, int64_t, dim)
LEVIN_CONSTRUCTOR(Softmax, int64_t, dim)
LEVIN_CONSTRUCTOR(LogSoftmax, int64_t, dim)
LEVIN_CONSTRUCTOR(Softmin, int64_t, dim)
LEVIN_CONSTRUCTOR(GELU, Approximate, approximate)
LEVIN_CONSTRUCTOR_OF_TWO(Softplus, beta, threshold)
LEVIN_CONSTRUCTOR_OF_TWO(Hardtanh, min_val, max_val)
LEVIN_CONSTRUCTOR_OF_TWO(Threshold, threshold, value)
LEVIN_CONSTRUCTOR_OF_TWO(RReLU, lower, upper)
#undef LEVIN_CONSTRUCTOR
#undef LEVIN_CONSTRUCTOR_OF_TWO

Tensor Softmax2d::forward(const Tensor& x) {
  if (x.dim() != 3 && x.dim() != 4)
    throw ShapeError(
        fmt::format("[Softmax2d] the input is {}, expected is (B, C, H, W) or (C, H, W).", to_string(x.sizes())));
  return softmax(x, -3);
}

std::string GELU::extra_repr() const {
  return fmt::format("approximate='{}'", approximate == Approximate::none ? "none" : "tanh");
}

PReLU::PReLU(int64_t num_parameters, const Options& options)
    : weight(register_parameter("weight", full({num_parameters}, options.init, {.dtype = default_dtype()}))) {}
std::string PReLU::extra_repr() const { return fmt::format("num_parameters={}", weight.numel()); }

}  // namespace levin::nn
