#pragma once
// Elementwise operations, with PyTorch's broadcasting and type promotion. They throw ShapeError for sizes that do not
// broadcast, DTypeError for types that an operation does not take, and DeviceError for tensors on different devices.

#include <levin/core/tensor.h>

namespace levin {

// Operations on two tensors, or on a tensor and a number.

/// a + alpha * b
Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
Tensor add(const Tensor& a, const Scalar& b);
/// a - alpha * b
Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
Tensor sub(const Tensor& a, const Scalar& b);
/// b - a
Tensor rsub(const Tensor& a, const Scalar& b);
/// a * b
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Scalar& b);
/// True division; integers give default_dtype().
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Scalar& b);
/// b / a
Tensor rdiv(const Tensor& a, const Scalar& b);
/// a / b rounded towards minus infinity; no gradient. Throws ValueError if an integer is divided by 0 (on CUDA only if
/// b is a number).
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& a, const Scalar& b);
/// The remainder of floor_divide, which has the sign of b (Python's %).
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, const Scalar& b);
/// base^exponent
Tensor pow(const Tensor& base, const Tensor& exponent);
Tensor pow(const Tensor& base, const Scalar& exponent);
Tensor pow(const Scalar& base, const Tensor& exponent);
/// Rounding of div: towards zero, or towards minus infinity.
enum class RoundingMode { trunc, floor };
/// Divides and rounds towards zero or minus infinity; the type is that of a and b, and the gradient is zero.
Tensor div(const Tensor& a, const Tensor& b, RoundingMode rounding_mode);
Tensor div(const Tensor& a, const Scalar& b, RoundingMode rounding_mode);
/// The remainder of a / b with the sign of a (C's fmod).
Tensor fmod(const Tensor& a, const Tensor& b);
Tensor fmod(const Tensor& a, const Scalar& b);
/// sqrt(a^2 + b^2) without overflow.
Tensor hypot(const Tensor& a, const Tensor& b);
/// a with the sign of b; integers give default_dtype().
Tensor copysign(const Tensor& a, const Tensor& b);
/// log(e^a + e^b) and log2(2^a + 2^b), stable for large values.
Tensor logaddexp(const Tensor& a, const Tensor& b);
Tensor logaddexp2(const Tensor& a, const Tensor& b);
/// a * log(b), and 0 where a is 0 unless b is NaN. There, the gradient of a is log(b) for b in (0, inf), else 0.
Tensor xlogy(const Tensor& a, const Tensor& b);
/// a * 2^b
Tensor ldexp(const Tensor& a, const Tensor& b);
/// 0 where x is negative, `values` where it is 0, and 1 where it is positive; no gradient.
Tensor heaviside(const Tensor& x, const Tensor& values);
/// Shifts of integers; a count as large as the type's width shifts all bits out.
Tensor bitwise_left_shift(const Tensor& a, const Tensor& count);
Tensor bitwise_right_shift(const Tensor& a, const Tensor& count);
/// The larger (smaller) of a and b, NaN if one is NaN. At a tie each operand gets half of the gradient.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
/// The angle of the point (x, y) in radians, from -pi to pi.
Tensor atan2(const Tensor& y, const Tensor& x);
/// start + weight * (end - start)
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight);
Tensor lerp(const Tensor& start, const Tensor& end, const Scalar& weight);
/// a + value * b * c
Tensor addcmul(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value = 1);
/// a + value * b / c
Tensor addcdiv(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value = 1);

/// Comparisons ==, !=, <, <=, > and >= of elements; the results are bool tensors, without a gradient.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& a, const Scalar& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Scalar& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Scalar& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Scalar& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Scalar& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Scalar& b);
/// Logical operations, for which every element but 0 is true; the results are bool tensors.
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);

/// Operations on the bits of integers; on bool they are logical. They are the operators & | ^ ~ too; as in Python,
/// (x == 0) | (y == 0) needs its brackets. Floating types throw DTypeError.
Tensor bitwise_and(const Tensor& a, const Tensor& b);
Tensor bitwise_and(const Tensor& a, const Scalar& b);
Tensor bitwise_or(const Tensor& a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, const Scalar& b);
Tensor bitwise_xor(const Tensor& a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, const Scalar& b);
Tensor bitwise_not(const Tensor& x);

/// Whether elements are NaN, infinite of either sign, neither, +infinity or -infinity; the results are bool tensors.
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor isposinf(const Tensor& x);
Tensor isneginf(const Tensor& x);
/// True for negative values and for -0.0.
Tensor signbit(const Tensor& x);

/// Arguments of isclose and allclose.
struct CloseOptions {
  double rtol = 1e-5;      ///< allowed difference relative to |b|
  double atol = 1e-8;      ///< allowed difference in addition
  bool equal_nan = false;  ///< NaN counts as equal to NaN
};
/// |a - b| <= atol + rtol * |b|, elementwise and for all elements.
Tensor isclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {});
bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {});
/// True if the sizes and all values are equal.
bool equal(const Tensor& a, const Tensor& b);

/// Returns a where the bool condition is true, else b; all broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b);
Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b);
/// The type is int64 if both numbers are integers, else default_dtype().
Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b);
/// Returns `value` where mask is true, else x.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value);

// Operations on one tensor. Integers are converted to default_dtype() if the result is not an integer.

/// -x, |x|, and the sign of x: -1, 0 or 1, and 0 for NaN.
Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
/// e^x, and e^x - 1 without cancellation.
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
/// Logarithms of base e, 2 and 10, and log(1 + x) without cancellation.
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor log1p(const Tensor& x);
/// The root of x, 1 / sqrt(x), x^2 and 1 / x.
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
/// Trigonometric functions of radians.
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
/// The hyperbolic tangent; like relu and sigmoid, it writes over a temporary x that nobody else holds.
Tensor tanh(Tensor x);
/// 1 / (1 + e^-x)
Tensor sigmoid(Tensor x);
/// The error function erf(x), 1 - erf(x) without cancellation, and the inverse function of erf.
Tensor erf(const Tensor& x);
Tensor erfc(const Tensor& x);
Tensor erfinv(const Tensor& x);
/// The logarithm of |gamma(x)|, its derivative and the n-th derivative of that.
Tensor lgamma(const Tensor& x);
Tensor digamma(const Tensor& x);
Tensor polygamma(int64_t n, const Tensor& x);
/// 2^x
Tensor exp2(const Tensor& x);
/// Inverse trigonometric functions, hyperbolic functions and their inverses.
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
/// Round down, up, to nearest (half to even), and towards zero. Integers stay as they are.
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);
Tensor trunc(const Tensor& x);
/// x - trunc(x)
Tensor frac(const Tensor& x);
/// min(max(x, min), max); one of the bounds may be absent, and NaN stays. Throws ValueError without both.
Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max = std::nullopt);
/// Bounds per element, which broadcast; an undefined one is no bound.
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max = {});
/// clamp with one bound.
Tensor clamp_min(const Tensor& x, const Scalar& min);
Tensor clamp_min(const Tensor& x, const Tensor& min);
Tensor clamp_max(const Tensor& x, const Scalar& max);
Tensor clamp_max(const Tensor& x, const Tensor& max);
/// base^exponent in float64, as in PyTorch.
Tensor float_power(const Tensor& base, const Tensor& exponent);
Tensor float_power(const Tensor& base, const Scalar& exponent);
/// x log(1 + y); 0 where x is 0 and y is a number. There, the gradient of x is log(1 + y) for y in (-1, inf), else 0.
Tensor xlog1py(const Tensor& x, const Tensor& y);
/// -x log x; 0 at 0, -inf below.
Tensor entr(const Tensor& x);
/// The standard normal distribution: its cumulative function, the logarithm of that, and its inverse.
Tensor ndtr(const Tensor& x);
Tensor log_ndtr(const Tensor& x);
Tensor ndtri(const Tensor& x);
/// log(x / (1 - x)); with eps, x is first clamped to [eps, 1 - eps].
Tensor logit(const Tensor& x, std::optional<double> eps = std::nullopt);
/// sin(pi x) / (pi x), and 1 at 0.
Tensor sinc(const Tensor& x);
/// Convert degrees to radians, and back.
Tensor deg2rad(const Tensor& x);
Tensor rad2deg(const Tensor& x);
/// Replaces NaN and the infinities, by default by 0 and the type's largest and smallest finite numbers.
Tensor nan_to_num(const Tensor& x, double nan = 0.0, std::optional<double> posinf = std::nullopt,
                  std::optional<double> neginf = std::nullopt);

// Activations.

/// max(0, x). The result is written over x if x is a temporary that nobody else holds, as in relu(conv2d(x, w)). The
/// same holds for tanh and sigmoid, whose gradients need the result alone.
Tensor relu(Tensor x);
/// x where positive, else negative_slope x. Maas et al. 2013.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// x where positive, else alpha (exp(x) - 1). Clevert et al. 2016.
Tensor elu(const Tensor& x, double alpha = 1.0);
/// How gelu computes the normal distribution's cumulative function Phi.
enum class Approximate { none, tanh };
/// Computes x * Phi(x) (Hendrycks & Gimpel 2016), exactly with erf or approximately with tanh.
Tensor gelu(const Tensor& x, Approximate approximate = Approximate::none);
/// x sigmoid(x). Elfwing et al. 2018.
Tensor silu(const Tensor& x);
/// log(1 + exp(beta x)) / beta, and x where beta x is above the threshold.
Tensor softplus(const Tensor& x, double beta = 1.0, double threshold = 20.0);
/// log(sigmoid(x)) without overflow.
Tensor logsigmoid(const Tensor& x);
/// 1.0507 x where positive, else 1.0507 * 1.6733 (exp(x) - 1). Klambauer et al. 2017.
Tensor selu(const Tensor& x);
/// max(0, x) + min(0, alpha (exp(x / alpha) - 1)). Barron 2017.
Tensor celu(const Tensor& x, double alpha = 1.0);
/// min(max(0, x), 6)
Tensor relu6(const Tensor& x);
/// min(max(min_val, x), max_val)
Tensor hardtanh(const Tensor& x, double min_val = -1.0, double max_val = 1.0);
/// min(max(0, x + 3), 6) / 6, and x times that (Howard et al. 2019).
Tensor hardsigmoid(const Tensor& x);
Tensor hardswish(const Tensor& x);
/// x tanh(softplus(x)). Misra 2019.
Tensor mish(const Tensor& x);
Tensor softsign(const Tensor& x);    ///< x / (1 + |x|)
Tensor tanhshrink(const Tensor& x);  ///< x - tanh(x)
/// Moves x towards 0 by lambda; 0 inside [-lambda, lambda]. Throws ValueError for a negative lambda.
Tensor softshrink(const Tensor& x, double lambda = 0.5);
/// x outside of [-lambda, lambda], else 0.
Tensor hardshrink(const Tensor& x, double lambda = 0.5);
/// x above the threshold, else value.
Tensor threshold(const Tensor& x, double threshold, double value);
/// x where positive, else weight x; weight has one element or one per channel (axis 1). He et al. 2015.
Tensor prelu(const Tensor& x, const Tensor& weight);
/// Random slope in [lower, upper) for negative values in training, else their mean. Xu et al. 2015.
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false,
             Generator* generator = nullptr);
/// a sigmoid(b), where a and b are the halves of x along axis. Dauphin et al. 2017.
Tensor glu(const Tensor& x, int64_t axis = -1);

// Conversion of type and device, copies.

/// Converts x to another type; returns x itself if it already has that type. The gradient has x's type.
Tensor to(const Tensor& x, DType dtype);
/// Copies x to a device; returns x itself if it is there already. The gradient is on x's device.
Tensor to(const Tensor& x, Device device);
/// Returns a copy in memory of its own.
Tensor clone(const Tensor& x);
/// Returns a row-major copy, or x itself if it is row-major.
Tensor contiguous(const Tensor& x);

/// Arguments of gumbel_softmax.
struct GumbelSoftmaxOptions {
  double tau = 1.0;                ///< temperature
  bool hard = false;               ///< one-hot results with the gradient of the soft ones
  int64_t axis = -1;               ///< axis of the classes
  Generator* generator = nullptr;  ///< default_generator()
};
/// Draws from the relaxed categorical distribution of these logits. Jang et al. 2017.
Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxOptions& options = {});

/// Zeroes elements with probability p and scales the others by 1 / (1 - p) in training (Srivastava et al. 2014), else
/// returns x. Throws ValueError for p outside of [0, 1].
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);
/// Zeroes whole channels of x (B, C, ...), independently, as dropout does elements (Tompson et al. 2015).
Tensor feature_dropout(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);
/// feature_dropout of (B, C, L) or (C, L), of (B, C, H, W) or (C, H, W), and of (B, C, D, H, W) or (C, D, H, W). As in
/// PyTorch, 3 axes of dropout2d are (B, C, L).
Tensor dropout1d(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);
Tensor dropout2d(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);
Tensor dropout3d(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);
/// Dropout for SELU networks, which keeps mean and variance (Klambauer et al. 2017); of elements, or of whole channels.
Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);
Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);

/// The operators are the functions above; a number may stand on either side. Comparisons give bool tensors.
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return add(a, b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return sub(a, b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return mul(a, b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return div(a, b); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return rdiv(b, a); }
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, const Scalar& b) { return remainder(a, b); }
inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator&(const Tensor& a, const Scalar& b) { return bitwise_and(a, b); }
inline Tensor operator&(const Scalar& a, const Tensor& b) { return bitwise_and(b, a); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator|(const Tensor& a, const Scalar& b) { return bitwise_or(a, b); }
inline Tensor operator|(const Scalar& a, const Tensor& b) { return bitwise_or(b, a); }
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator^(const Tensor& a, const Scalar& b) { return bitwise_xor(a, b); }
inline Tensor operator^(const Scalar& a, const Tensor& b) { return bitwise_xor(b, a); }
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator==(const Tensor& a, const Scalar& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator!=(const Tensor& a, const Scalar& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<(const Tensor& a, const Scalar& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator<=(const Tensor& a, const Scalar& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>(const Tensor& a, const Scalar& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator>=(const Tensor& a, const Scalar& b) { return ge(a, b); }

}  // namespace levin
