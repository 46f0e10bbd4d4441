#pragma once
// Activations as layers, with PyTorch's arguments and defaults.

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/nn/layer.h>

namespace levin::nn {

namespace detail {
/// Returns "name=value, name=value", as the printed tree shows arguments.
std::string arguments_text(std::initializer_list<std::pair<const char*, double>> arguments);
}  // namespace detail

// A layer of no arguments, of one and of two: class, function, and type, name and default of each argument.
// Constructors are in activation.cpp, since programs that include this header would compile the tables of all classes
// otherwise.
#define LEVIN_ACTIVATION(Class, function)                            \
  class Class : public Layer<Class> {                                \
   public:                                                           \
    Tensor forward(const Tensor& x) override { return function(x); } \
  };
#define LEVIN_ACTIVATION_OF(Class, function, type, name, ...)                                                        \
  class Class : public Layer<Class> {                                                                                \
   public:                                                                                                           \
    explicit Class(type name##_ __VA_OPT__(=) __VA_ARGS__);                                                          \
    Tensor forward(const Tensor& x) override { return function(x, name); }                                           \
    std::string extra_repr() const override { return detail::arguments_text({{#name, static_cast<double>(name)}}); } \
    template <class F>                                                                                               \
    auto with_arguments(F construct) const {                                                                         \
      return construct(name);                                                                                        \
    }                                                                                                                \
    const type name;                                                                                                 \
  };
#define LEVIN_ACTIVATION_OF_TWO(Class, function, first, first_default, second, second_default)                       \
  class Class : public Layer<Class> {                                                                                \
   public:                                                                                                           \
    explicit Class(double first##_ first_default, double second##_ second_default);                                  \
    Tensor forward(const Tensor& x) override { return function(x, first, second); }                                  \
    std::string extra_repr() const override { return detail::arguments_text({{#first, first}, {#second, second}}); } \
    template <class F>                                                                                               \
    auto with_arguments(F construct) const {                                                                         \
      return construct(first, second);                                                                               \
    }                                                                                                                \
    const double first, second;                                                                                      \
  };

LEVIN_ACTIVATION(ReLU, relu)
LEVIN_ACTIVATION(ReLU6, relu6)
LEVIN_ACTIVATION(SELU, selu)
LEVIN_ACTIVATION(SiLU, silu)
LEVIN_ACTIVATION(Mish, mish)
LEVIN_ACTIVATION(Hardswish, hardswish)
LEVIN_ACTIVATION(Hardsigmoid, hardsigmoid)
LEVIN_ACTIVATION(Softsign, softsign)
LEVIN_ACTIVATION(Tanhshrink, tanhshrink)
LEVIN_ACTIVATION(LogSigmoid, logsigmoid)
LEVIN_ACTIVATION(Tanh, tanh)
LEVIN_ACTIVATION(Sigmoid, sigmoid)
LEVIN_ACTIVATION_OF(LeakyReLU, leaky_relu, double, negative_slope, 0.01)
LEVIN_ACTIVATION_OF(ELU, elu, double, alpha, 1.0)
LEVIN_ACTIVATION_OF(CELU, celu, double, alpha, 1.0)
LEVIN_ACTIVATION_OF(Softshrink, softshrink, double, lambda, 0.5)
LEVIN_ACTIVATION_OF(Hardshrink, hardshrink, double, lambda, 0.5)
LEVIN_ACTIVATION_OF(GLU, glu, int64_t, dim, -1)
LEVIN_ACTIVATION_OF(Softmax, softmax, int64_t, dim)
LEVIN_ACTIVATION_OF(LogSoftmax, log_softmax, int64_t, dim)
LEVIN_ACTIVATION_OF(Softmin, softmin, int64_t, dim)
LEVIN_ACTIVATION_OF_TWO(Softplus, softplus, beta, = 1.0, threshold, = 20.0)
LEVIN_ACTIVATION_OF_TWO(Hardtanh, hardtanh, min_val, = -1.0, max_val, = 1.0)
LEVIN_ACTIVATION_OF_TWO(Threshold, levin::threshold, threshold, , value, )
#undef LEVIN_ACTIVATION
#undef LEVIN_ACTIVATION_OF
#undef LEVIN_ACTIVATION_OF_TWO

class GELU : public Layer<GELU> {
 public:
  explicit GELU(Approximate approximate_ = Approximate::none);
  Tensor forward(const Tensor& x) override { return gelu(x, approximate); }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(approximate);
  }

  const Approximate approximate;
};

/// softmax over the channels of (B, C, H, W) or (C, H, W).
class Softmax2d : public Layer<Softmax2d> {
 public:
  Tensor forward(const Tensor& x) override;
};

struct PReLUOptions {
  double init = 0.25;
};
/// Learns the slope of negative values, one for all or one per channel (He et al. 2015).
class PReLU : public Layer<PReLU> {
 public:
  using Options = PReLUOptions;
  explicit PReLU(int64_t num_parameters = 1, const Options& options = {});
  Tensor forward(const Tensor& x) override { return prelu(x, weight); }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(weight.numel(), Options{});
  }

  Parameter& weight;  ///< (num_parameters)
};

/// Draws the slope of negative values in training (Xu et al. 2015).
class RReLU : public Layer<RReLU> {
 public:
  explicit RReLU(double lower_ = 1.0 / 8, double upper_ = 1.0 / 3);
  Tensor forward(const Tensor& x) override { return rrelu(x, lower, upper, is_training()); }
  std::string extra_repr() const override { return detail::arguments_text({{"lower", lower}, {"upper", upper}}); }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(lower, upper);
  }

  const double lower, upper;
};

}  // namespace levin::nn
