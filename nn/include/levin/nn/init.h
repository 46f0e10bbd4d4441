#pragma once
// Initialization of parameters, in place and not recorded by autograd. Fans are defined as in PyTorch: for a weight
// (O, I, kh, kw) the fan in is I kh kw and the fan out O kh kw. Each function returns its argument. Random numbers come
// from `generator`, or from the default generator if that is null.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

namespace levin::nn::init {

/// Fills with uniform values in [low, high). t is of a floating dtype, as for all random values.
const Tensor& uniform_(const Tensor& t, double low = 0.0, double high = 1.0, Generator* generator = nullptr);
/// Fills with normal values of this mean and standard deviation.
const Tensor& normal_(const Tensor& t, double mean = 0.0, double std = 1.0, Generator* generator = nullptr);
/// Fills with a value, with 0 and with 1.
const Tensor& constant_(const Tensor& t, double value);
const Tensor& zeros_(const Tensor& t);
const Tensor& ones_(const Tensor& t);

/// Fills with uniform values in +-gain sqrt(6 / (fan_in + fan_out)), or with normal values of standard deviation
/// gain sqrt(2 / (fan_in + fan_out)) (Glorot & Bengio 2010). Throws ShapeError for fewer than two dimensions.
const Tensor& xavier_uniform_(const Tensor& t, double gain = 1.0, Generator* generator = nullptr);
const Tensor& xavier_normal_(const Tensor& t, double gain = 1.0, Generator* generator = nullptr);

/// The fan that a variance is kept for: `in` keeps that of the activations, `out` that of the gradients.
enum class Fan { in, out };
/// The activation that follows a layer.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };
/// Returns the recommended gain of a nonlinearity, as torch.nn.init.calculate_gain does; `a` is leaky_relu's slope.
/// Convolutions count as linear.
double calculate_gain(Nonlinearity nonlinearity, double a = 0.01);

/// Options of kaiming_uniform_ and kaiming_normal_.
struct KaimingOptions {
  double a = 0.0;                                        ///< slope of leaky_relu
  Fan mode = Fan::in;                                    ///< the fan that the values are scaled by
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;  ///< defines the gain, see calculate_gain
  Generator* generator = nullptr;                        ///< null: the default generator
};
/// Fills with uniform values in +-gain sqrt(3 / fan), or with normal values of standard deviation gain / sqrt(fan)
/// (He et al. 2015). Throws ShapeError for fewer than two dimensions; leaves an empty tensor as it is.
const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options = {});
const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options = {});

/// Fills with values of the normal distribution truncated to [a, b], by the inverse of its distribution function.
/// Throws ValueError unless std is positive and a is below b.
const Tensor& trunc_normal_(const Tensor& t, double mean = 0.0, double std = 1.0, double a = -2.0, double b = 2.0,
                            Generator* generator = nullptr);
/// Fills with a matrix with orthonormal rows (if it is wide) or columns, times gain (Saxe et al. 2013). Axes behind the
/// first count as columns. Throws ShapeError for fewer than two dimensions.
const Tensor& orthogonal_(const Tensor& t, double gain = 1.0, Generator* generator = nullptr);
/// Fills a matrix with ones on its diagonal and zeros elsewhere. Throws ShapeError for other numbers of dimensions.
const Tensor& eye_(const Tensor& t);
/// Fills the weight (O, I, k...) of a convolution so that each group passes on its first input channels unchanged.
/// Throws ShapeError unless it has 3 to 5 dimensions, and ValueError if the groups do not divide O.
const Tensor& dirac_(const Tensor& t, int64_t groups = 1);
/// Fills a matrix with normal values, of which the share `sparsity` of each column, rounded up, is 0 (Martens 2010).
/// Throws ShapeError for other numbers of dimensions, and ValueError for a share outside of [0, 1].
const Tensor& sparse_(const Tensor& t, double sparsity, double std = 0.01, Generator* generator = nullptr);

/// Numbers of inputs of an output and of outputs of an input, `in` and `out`.
struct Fans {
  int64_t in, out;
};
/// Returns the fan in and the fan out of a weight; throws ShapeError for fewer than two dimensions.
Fans calculate_fans(const Tensor& t);

}  // namespace levin::nn::init
