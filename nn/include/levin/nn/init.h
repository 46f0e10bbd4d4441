#pragma once
// Initialization of parameters, in place and not recorded by autograd. Fans are defined as in PyTorch: for a weight
// (O, I, kh, kw) the fan in is I kh kw and the fan out O kh kw. Each function returns its argument.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

namespace levin::nn::init {

const Tensor& uniform_(const Tensor& t, double low = 0.0, double high = 1.0, Generator* generator = nullptr);
const Tensor& normal_(const Tensor& t, double mean = 0.0, double std = 1.0, Generator* generator = nullptr);
const Tensor& constant_(const Tensor& t, double value);
const Tensor& zeros_(const Tensor& t);
const Tensor& ones_(const Tensor& t);

/// Fills with uniform values in +-gain sqrt(6 / (fan_in + fan_out)), or with normal values of standard deviation
/// gain sqrt(2 / (fan_in + fan_out)) (Glorot & Bengio 2010).
const Tensor& xavier_uniform_(const Tensor& t, double gain = 1.0, Generator* generator = nullptr);
const Tensor& xavier_normal_(const Tensor& t, double gain = 1.0, Generator* generator = nullptr);

enum class Fan { in, out };
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };
/// Returns the recommended gain of a nonlinearity, as torch.nn.init.calculate_gain does; `a` is leaky_relu's slope.
/// Convolutions count as linear.
double calculate_gain(Nonlinearity nonlinearity, double a = 0.01);

struct KaimingOptions {
  double a = 0.0;  ///< slope of leaky_relu
  Fan mode = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
  Generator* generator = nullptr;
};
/// Fills with uniform values in +-gain sqrt(3 / fan), or with normal values of standard deviation gain / sqrt(fan)
/// (He et al. 2015).
const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options = {});
const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options = {});

/// Fills with normal values that are drawn again while they are outside [a, b].
const Tensor& trunc_normal_(const Tensor& t, double mean = 0.0, double std = 1.0, double a = -2.0, double b = 2.0,
                            Generator* generator = nullptr);
/// Fills with a matrix with orthonormal rows or columns, times gain (Saxe et al. 2013). Axes behind the first count as
/// columns.
const Tensor& orthogonal_(const Tensor& t, double gain = 1.0, Generator* generator = nullptr);
/// Fills a matrix with the identity.
const Tensor& eye_(const Tensor& t);
/// Fills the weight (O, I, k...) of a convolution so that each group passes on its first input channels unchanged.
const Tensor& dirac_(const Tensor& t, int64_t groups = 1);
/// Fills a matrix with normal values, of which the share `sparsity` of each column is 0 (Martens 2010).
const Tensor& sparse_(const Tensor& t, double sparsity, double std = 0.01, Generator* generator = nullptr);

struct Fans {
  int64_t in, out;
};
/// Returns fan in and fan out; throws ShapeError for fewer than two dimensions.
Fans calculate_fans(const Tensor& t);

}  // namespace levin::nn::init
