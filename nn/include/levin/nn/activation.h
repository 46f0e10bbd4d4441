#pragma once
// Activations as layers, with PyTorch's arguments and defaults. Where a comment says nothing else, the layer takes a
// floating tensor of any shape, computes each element by itself, and returns the input's shape and dtype.

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
// One whose function has an in-place form.
#define LEVIN_ACTIVATION_IN_PLACE(Class, function)                   \
  class Class : public Layer<Class> {                                \
   public:                                                           \
    Tensor forward(const Tensor& x) override { return function(x); } \
                                                                     \
   protected:                                                        \
    bool forward_in_place(const Tensor& x) override {                \
      x.function##_();                                               \
      return true;                                                   \
    }                                                                \
  };
#define LEVIN_ACTIVATION_OF(Class, function, type, name, ...)                                                        \
  class Class : public Layer<Class> {                                                                                \
   public:                                                                                                           \
    explicit Class(type name##_ __VA_OPT__(=) __VA_ARGS__);                                                          \
    Tensor forward(const Tensor& x) override { return function(x, name); }                                           \
    std::string extra_repr() const override { return detail::arguments_text({{#name, static_cast<double>(name)}}); } \
    auto with_arguments(auto construct) const { return construct(name); }                                            \
    const type name;                                                                                                 \
  };
#define LEVIN_ACTIVATION_OF_TWO(Class, function, first, first_default, second, second_default)                       \
  class Class : public Layer<Class> {                                                                                \
   public:                                                                                                           \
    explicit Class(double first##_ first_default, double second##_ second_default);                                  \
    Tensor forward(const Tensor& x) override { return function(x, first, second); }                                  \
    std::string extra_repr() const override { return detail::arguments_text({{#first, first}, {#second, second}}); } \
    auto with_arguments(auto construct) const { return construct(first, second); }                                   \
    const double first, second;                                                                                      \
  };

/// max(0, x).
LEVIN_ACTIVATION_IN_PLACE(ReLU, relu)
/// min(max(0, x), 6).
LEVIN_ACTIVATION(ReLU6, relu6)
/// 1.0507 (max(0, x) + min(0, 1.6733 (exp(x) - 1))), which keeps mean 0 and variance 1 from layer to layer
/// (Klambauer et al. 2017).
LEVIN_ACTIVATION(SELU, selu)
/// x sigmoid(x), also called swish (Elfwing et al. 2018).
LEVIN_ACTIVATION(SiLU, silu)
/// x tanh(softplus(x)) (Misra 2019).
LEVIN_ACTIVATION(Mish, mish)
/// x min(max(0, x + 3), 6) / 6 (Howard et al. 2019).
LEVIN_ACTIVATION(Hardswish, hardswish)
/// min(max(0, x + 3), 6) / 6 (Howard et al. 2019).
LEVIN_ACTIVATION(Hardsigmoid, hardsigmoid)
/// x / (1 + |x|).
LEVIN_ACTIVATION(Softsign, softsign)
/// x - tanh(x).
LEVIN_ACTIVATION(Tanhshrink, tanhshrink)
/// log(1 / (1 + exp(-x))), stable for large |x|.
LEVIN_ACTIVATION(LogSigmoid, logsigmoid)
/// (exp(x) - exp(-x)) / (exp(x) + exp(-x)).
LEVIN_ACTIVATION_IN_PLACE(Tanh, tanh)
/// 1 / (1 + exp(-x)).
LEVIN_ACTIVATION_IN_PLACE(Sigmoid, sigmoid)
/// x where it is positive, else negative_slope x (Maas et al. 2013).
LEVIN_ACTIVATION_OF(LeakyReLU, leaky_relu, double, negative_slope, 0.01)
/// x where it is positive, else alpha (exp(x) - 1) (Clevert et al. 2016).
LEVIN_ACTIVATION_OF(ELU, elu, double, alpha, 1.0)
/// x where it is positive, else alpha (exp(x / alpha) - 1) (Barron 2017).
LEVIN_ACTIVATION_OF(CELU, celu, double, alpha, 1.0)
/// x moved towards 0 by lambda; 0 inside [-lambda, lambda]. forward throws ValueError for a negative lambda.
LEVIN_ACTIVATION_OF(Softshrink, softshrink, double, lambda, 0.5)
/// x outside of [-lambda, lambda], else 0.
LEVIN_ACTIVATION_OF(Hardshrink, hardshrink, double, lambda, 0.5)
/// a sigmoid(b), where a and b are the halves of x along `dim`, whose size is halved; forward throws ShapeError for an
/// odd size (Dauphin et al. 2017).
LEVIN_ACTIVATION_OF(GLU, glu, int64_t, dim, -1)
/// exp(x) over its sum along `dim`, so that the results along `dim` are positive and add up to 1. PyTorch also
/// guesses an axis where dim is missing; here it is required.
LEVIN_ACTIVATION_OF(Softmax, softmax, int64_t, dim)
/// log(softmax(x)) along `dim`, computed without overflow.
LEVIN_ACTIVATION_OF(LogSoftmax, log_softmax, int64_t, dim)
/// softmax(-x) along `dim`.
LEVIN_ACTIVATION_OF(Softmin, softmin, int64_t, dim)
/// log(1 + exp(beta x)) / beta, and x itself where beta x is above `threshold`.
LEVIN_ACTIVATION_OF_TWO(Softplus, softplus, beta, = 1.0, threshold, = 20.0)
/// x clamped to [min_val, max_val].
LEVIN_ACTIVATION_OF_TWO(Hardtanh, hardtanh, min_val, = -1.0, max_val, = 1.0)
/// x where it is above `threshold`, else `value`.
LEVIN_ACTIVATION_OF_TWO(Threshold, levin::threshold, threshold, , value, )
#undef LEVIN_ACTIVATION
#undef LEVIN_ACTIVATION_IN_PLACE
#undef LEVIN_ACTIVATION_OF
#undef LEVIN_ACTIVATION_OF_TWO

/// x Phi(x), where Phi is the distribution function of the standard normal distribution (Hendrycks & Gimpel 2016).
/// `approximate` is `none` for the exact value by erf, or `tanh` for the approximation by tanh.
class GELU : public Layer<GELU> {
 public:
  explicit GELU(Approximate approximate_ = Approximate::none);
  Tensor forward(const Tensor& x) override { return gelu(x, approximate); }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(approximate); }

  const Approximate approximate;
};

/// Softmax over the channels of (B, C, H, W) or (C, H, W), of the same shape. forward throws ShapeError for other
/// numbers of axes.
class Softmax2d : public Layer<Softmax2d> {
 public:
  Tensor forward(const Tensor& x) override;
};

/// Options of PReLU.
struct PReLUOptions {
  double init = 0.25;  ///< first value of the slopes
};
/// x where it is positive, else weight x, where the slopes `weight` are learned (He et al. 2015): `num_parameters` is 1
/// for one slope, or the number of channels, which are axis 1. forward throws ShapeError if the input has another
/// number of channels.
class PReLU : public Layer<PReLU> {
 public:
  using Options = PReLUOptions;
  explicit PReLU(int64_t num_parameters = 1, const Options& options = {});
  Tensor forward(const Tensor& x) override { return prelu(x, weight); }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(weight.numel(), Options{}); }

  Parameter& weight;  ///< (num_parameters)
};

/// x where it is positive, else a x. In training the slope a of each element is drawn from the uniform distribution on
/// [lower, upper), by the default generator; otherwise it is (lower + upper) / 2 (Xu et al. 2015). forward throws
/// ValueError if lower is above upper.
class RReLU : public Layer<RReLU> {
 public:
  explicit RReLU(double lower_ = 1.0 / 8, double upper_ = 1.0 / 3);
  Tensor forward(const Tensor& x) override { return rrelu(x, lower, upper, is_training()); }
  std::string extra_repr() const override { return detail::arguments_text({{"lower", lower}, {"upper", upper}}); }
  auto with_arguments(auto construct) const { return construct(lower, upper); }

  const double lower, upper;
};

}  // namespace levin::nn
