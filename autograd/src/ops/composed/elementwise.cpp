// Elementwise functions and activations that are compositions of others.

#include "../../errors.h"
#include "../elementwise/common.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/trace.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace levin {

using namespace ops;

Tensor pow(const Scalar& base, const Tensor& exponent) {
  return pow(full({}, base, {.dtype = base.promote_with(exponent.dtype()), .device = exponent.device()}), exponent);
}

Tensor div(const Tensor& a, const Tensor& b, RoundingMode rounding_mode) {
  const Tensor x = a.detach(), y = b.detach();
  if (rounding_mode == RoundingMode::floor) return floor_divide(x, y);
  if (is_floating(result_type(a, b))) return trunc(div(x, y));
  const Tensor floored = floor_divide(x, y);
  return add(floored, logical_and(ne(remainder(x, y), 0), lt(floored, 0)).to(floored.dtype()));
}
Tensor div(const Tensor& a, const Scalar& b, RoundingMode rounding_mode) {
  return div(a, full({}, b, {.dtype = b.promote_with(a.dtype()), .device = a.device()}), rounding_mode);
}

Tensor fmod(const Tensor& a, const Tensor& b) {
  if (!is_floating(result_type(a, b))) return sub(a, mul(div(a, b, RoundingMode::trunc), b));
  // The remainder of magnitudes is exact; a - quotient * b would round its product. abs(a) has no slope at 0.
  const Tensor sign = copysign(ones({}, like(b)), a.detach());
  const Tensor y = mul(remainder(mul(a, sign), abs(b).detach()), sign);
  if (!b.requires_grad()) return y;
  const Tensor quotient = round(div(sub(a, y), b)).detach();
  return sub(y, mul(masked_fill(sub(b, b.detach()), isinf(b), 0), quotient));
}
Tensor fmod(const Tensor& a, const Scalar& b) {
  return fmod(a, full({}, b, {.dtype = b.promote_with(a.dtype()), .device = a.device()}));
}

namespace {

/// a - b, but 0 for equal infinities, whose difference is not a number.
Tensor difference(const Tensor& a, const Tensor& b) {
  return masked_fill(sub(a, b), logical_and(eq(a, b), isinf(a)), 0);
}

}  // namespace

Tensor logaddexp(const Tensor& a, const Tensor& b) {
  return add(maximum(a, b), log1p(exp(neg(abs(difference(a, b))))));
}
Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  return add(maximum(a, b), div(log1p(exp2(neg(abs(difference(a, b))))), std::numbers::ln2));
}

namespace {

/// Computes x log_of(y), and 0 where x is 0 unless y is NaN. log_of is finite for finite y above `lowest`.
Tensor times_logarithm(const Tensor& x, const Tensor& y, Tensor (*log_of)(const Tensor&), int64_t lowest) {
  const Tensor none = eq(x, 0), zero = logical_and(none, logical_or(le(y, lowest), isposinf(y)));
  const Tensor product = masked_fill(mul(x, log_of(where(zero, lowest + 1, y))), zero, 0);
  return add(product, where(none, 0.0, -0.0).to(product.dtype()));  // 0 times a negative logarithm is -0
}

}  // namespace

Tensor xlogy(const Tensor& a, const Tensor& b) { return times_logarithm(a, b, &log, 0); }
Tensor xlog1py(const Tensor& x, const Tensor& y) { return times_logarithm(x, y, &log1p, -1); }

Tensor ldexp(const Tensor& a, const Tensor& b) {
  const Tensor y = mul(a, pow(2.0, b));
  return a.is_floating() && !b.is_floating() ? to(y, a.dtype()) : y;
}

Tensor heaviside(const Tensor& x, const Tensor& values) {
  const Tensor at = x.detach(), step = gt(at, 0).to(x.dtype());
  return where(eq(at, 0), values.detach(), step);
}

namespace {

/// Returns 2^count for counts of at most 31; exact in int64.
Tensor power_of_two(const Tensor& count) { return pow(2, count); }

int64_t bits_of(DType dtype) { return static_cast<int64_t>(size_of(dtype)) * 8; }

void refuse_floating(const char* op, DType t) {
  if (is_floating(t) || t == kBool)
    fail<DTypeError>("[{}] {} has no bits to shift; convert it with x.to(kInt64).", op, t);
}

}  // namespace

Tensor bitwise_left_shift(const Tensor& a, const Tensor& count) {
  const DType t = result_type(a, count);
  refuse_floating("bitwise_left_shift", t);
  const Tensor n = to(count, kInt64), half = clamp(floor_divide(n, 2), 0, 31), rest = clamp(sub(n, half), 0, 32);
  const Tensor shifted = mul(mul(to(a, kInt64), power_of_two(half)), power_of_two(rest));
  // As in PyTorch, a shift by a negative number is one by too many.
  return to(where(logical_or(lt(n, 0), ge(n, bits_of(t))), 0, shifted), t);
}

Tensor bitwise_right_shift(const Tensor& a, const Tensor& count) {
  const DType t = result_type(a, count);
  refuse_floating("bitwise_right_shift", t);
  const Tensor n = to(count, kInt64), half = clamp(floor_divide(n, 2), 0, 31), rest = clamp(sub(n, half), 0, 32);
  const Tensor shifted = floor_divide(floor_divide(to(a, kInt64), power_of_two(half)), power_of_two(rest));
  return to(where(lt(n, 0), neg(lt(a, 0).to(kInt64)), shifted), t);
}

// Properties

Tensor isposinf(const Tensor& x) { return logical_and(isinf(x), gt(x, 0)); }
Tensor isneginf(const Tensor& x) { return logical_and(isinf(x), lt(x, 0)); }
Tensor signbit(const Tensor& x) { return x.is_floating() ? lt(copysign(ones_like(x), x.detach()), 0) : lt(x, 0); }

Tensor isclose(const Tensor& a, const Tensor& b, const CloseOptions& options) {
  no_grad guard;
  const DType t = result_type(a, b), computed = is_floating(t) ? t : kFloat64;
  const Tensor x = to(a, computed), y = to(b, computed);
  const Tensor allowed = add(mul(abs(y), options.rtol), options.atol);
  Tensor close = logical_or(eq(x, y), logical_and(isfinite(y), le(abs(sub(x, y)), allowed)));
  if (options.equal_nan) close = logical_or(close, logical_and(isnan(x), isnan(y)));
  return close;
}

bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options) {
  return all(isclose(a, b, options)).item<bool>();
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && all(eq(a.detach(), b.detach())).item<bool>();
}

// Functions of one tensor

Tensor frac(const Tensor& x) { return sub(x, trunc(x)); }

Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max) {
  if (!min.defined() && !max.defined()) throw ValueError("[clamp] neither min nor max is given; name one of them.");
  const Tensor low = min.defined() ? where(lt(x, min), min, x) : x;
  return max.defined() ? where(gt(low, max), max, low) : low;
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  const Tensor values = x.is_floating() ? x : x.to(kFloat32);
  const Tensor p = eps ? clamp(values, *eps, 1.0 - *eps) : values;
  return log(div(p, rsub(p, 1)));
}

Tensor sinc(const Tensor& x) {
  const Tensor zero = eq(x, 0), angle = mul(masked_fill(x, zero, 1), std::numbers::pi);
  return masked_fill(div(sin(angle), angle), zero, 1);
}

Tensor deg2rad(const Tensor& x) { return mul(x, std::numbers::pi / 180); }
Tensor rad2deg(const Tensor& x) { return mul(x, 180 / std::numbers::pi); }

namespace {

double largest_of(DType dtype) {
  return dtype == kHalf       ? 65504.0
         : dtype == kBFloat16 ? 0x1.fep127
         : dtype == kFloat32  ? static_cast<double>(std::numeric_limits<float>::max())
                              : std::numeric_limits<double>::max();
}

}  // namespace

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!x.is_floating()) return clone(x);
  const double largest = largest_of(x.dtype());
  const Tensor numbers = masked_fill(x, isnan(x), nan);
  return masked_fill(masked_fill(numbers, isposinf(x), posinf.value_or(largest)), isneginf(x),
                     neginf.value_or(-largest));
}

// Activations

Tensor celu(const Tensor& x, double alpha) {
  if (alpha == 0) throw ValueError("[celu] alpha is 0, and x is divided by it; give another number.");
  if (alpha > 0) return alpha == 1.0 ? elu(x) : mul(elu(div(x, alpha)), alpha);
  const Tensor above = gt(x, 0);
  return where(above, x, mul(expm1(div(where(above, 0, x), alpha)), alpha));
}
Tensor relu6(const Tensor& x) { return hardtanh(x, 0.0, 6.0); }
Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  if (!(min_val <= max_val)) fail<ValueError>("[hardtanh] min_val {} is above max_val {}.", min_val, max_val);
  // Whole bounds keep the type of whole numbers.
  if (x.is_floating()) return clamp(x, min_val, max_val);
  return to(clamp(x, min_val, max_val), x.dtype());
}
Tensor tanhshrink(const Tensor& x) { return sub(x, tanh(x)); }
Tensor softshrink(const Tensor& x, double lambda) {
  check_floating("softshrink", x);
  if (!(lambda >= 0)) fail<ValueError>("[softshrink] lambda is {}. Give 0 or more.", lambda);
  return sub(x, clamp(x, -lambda, lambda));
}
Tensor hardshrink(const Tensor& x, double lambda) { return masked_fill(x, le(abs(x), lambda), 0); }
Tensor threshold(const Tensor& x, double threshold, double value) { return masked_fill(x, le(x, threshold), value); }

Tensor prelu(const Tensor& x, const Tensor& weight) {
  Tensor slopes = weight;
  if (weight.numel() != 1) {
    const int64_t channels = x.dim() > 1 ? x.size(1) : 1;
    if (weight.dim() != 1 || weight.numel() != channels)
      fail<ShapeError>("[prelu] weight is {}, but x of {} needs (1,) or ({},).", weight.sizes(), x.sizes(), channels);
    slopes = along_axis(weight, 1, x.dim());
  } else {
    slopes = reshape(weight, {});
  }
  const DType t = floating_type(result_type(x, slopes));
  const Tensor y = binary(kernels::prelu, "prelu", x, slopes, t, t);
  if (Context* c = record("prelu", y, {x, slopes}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor input = k.saved(0), positive = gt(input, 0);
        return {k.needs(0) ? where(positive, g, mul(g, k.saved(1))) : Tensor(),
                k.needs(1) ? masked_fill(mul(g, input), positive, 0) : Tensor()};
      }))
    c->save(x, slopes);
  return y;
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training, Generator* generator) {
  if (!(lower <= upper)) fail<ValueError>("[rrelu] lower {} is above upper {}.", lower, upper);
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  check_floating("rrelu", x);
  const Tensor slopes = uniform_(empty_like(x), lower, upper, generator);
  return where(gt(x, 0), x, mul(x, slopes));
}

namespace {

struct Halves {
  int axis;
  int64_t size;
  Tensor first(const Tensor& x) const { return narrow(x, axis, 0, size); }
  Tensor second(const Tensor& x) const { return narrow(x, axis, size, size); }
};

/// With s = sigmoid(b), the gradients of a s are g s, written to its half of x's gradient, and g a s (1 - s).
Grads gradient_of_glu(Context& k, const Tensor& g) {
  const auto& halves = k.get<Halves>();
  const Tensor x = k.saved(0), a = halves.first(x), b = halves.second(x);
  if (grad_enabled()) {
    const Tensor s = sigmoid(b);
    return {cat({mul(g, s), mul(mul(g, a), mul(s, rsub(s, 1)))}, halves.axis)};
  }
  const Tensor dx = empty(x.sizes(), like(x));
  const TensorView da = halves.first(dx).tensor_view(), db = halves.second(dx).tensor_view();
  const TensorView incoming = g.tensor_view(), second = b.tensor_view();
  launch(kernels::glu, x.device(), {da, incoming, second, x.dtype()});
  launch(kernels::glu_slope, x.device(), {db, a.tensor_view(), second, incoming, x.dtype()});
  return {dx};
}

}  // namespace

Tensor glu(const Tensor& x, int64_t axis) {
  const int along = wrap_axis(axis, x.dim(), "glu");
  if (x.dim() == 0 || x.size(along) % 2 != 0)
    fail<ShapeError>("[glu] axis {} of {} does not split into two halves.", axis, x.sizes());
  const Halves halves{along, x.size(along) / 2};
  if (!x.is_floating() || tracing()) return mul(halves.first(x), sigmoid(halves.second(x)));
  const Tensor from = x.detach();
  const Tensor y =
      binary(kernels::glu, "glu", halves.first(from), halves.second(from), x.dtype(), x.dtype());
  if (Context* k = record("glu", y, {x}, gradient_of_glu)) k->save(x).set(halves);
  return y;
}

Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxOptions& options) {
  check_floating("gumbel_softmax", logits, "logits");
  const double tiny = logits.dtype() == kFloat64 ? 1e-300 : 1e-38;  // log(0) would make the noise infinite
  const DType computed = statistics_type(logits);
  const Tensor u =
      uniform_(empty(logits.sizes(), {.dtype = computed, .device = logits.device()}), 0.0, 1.0, options.generator);
  const Tensor noise = neg(log(clamp(neg(log(clamp(u, tiny))), tiny)));
  const Tensor soft = softmax(div(add(logits, to(noise, logits.dtype())), options.tau), options.axis);
  if (!options.hard) return soft;
  const Tensor at = argmax(soft.detach(), options.axis, true);
  const Tensor hard = scatter(zeros_like(soft), options.axis, at, ones(at.sizes(), like(soft)));
  return add(sub(hard, soft.detach()), soft);
}

// Dropout

namespace {

/// Returns (B, C, 1, ...) for x (B, C, ...).
Shape sizes_of_features(const char* op, const Tensor& x) {
  if (x.dim() < 2) fail<ShapeError>("[{}] the input is {}, expected is (B, C, ...).", op, x.sizes());
  return joined({x.size(0), x.size(1)}, Shape::filled(x.dim() - 2, 1));
}

}  // namespace

Tensor feature_dropout(const Tensor& x, double p, bool training, Generator* generator) {
  const Shape sizes = sizes_of_features("feature_dropout", x);
  if (!training || p == 0) return dropout(x, p, false);
  return mul(x, dropout(ones(sizes, like(x)), p, true, generator));
}

namespace {

Tensor dropout_of_axes(const char* op, const Tensor& x, int channels, double p, bool training, Generator* g) {
  if (x.dim() == channels + 1) return feature_dropout(x, p, training, g);
  if (x.dim() == channels) return squeeze(feature_dropout(unsqueeze(x, 0), p, training, g), 0);
  fail<ShapeError>("[{}] the input is {}, expected are {} axes behind (B, C) or (C).", op, x.sizes(), channels - 1);
}

/// alpha_dropout of x whose kept elements are drawn in `sizes`.
Tensor alpha_dropped(const char* op, const Tensor& x, const Shape& sizes, double p, bool training, Generator* g) {
  check_floating(op, x);
  if (!(p >= 0 && p <= 1)) fail<ValueError>("[{}] p is {}. Give a probability between 0 and 1.", op, p);
  if (!training || p == 0) return x;
  if (p == 1) return mul(x, 0.0);
  constexpr double alpha = 1.7580993408473766;  // the limit of SELU at minus infinity, with the other sign
  const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const Tensor kept = bernoulli(full(sizes, 1 - p, like(x)), g);
  return add(mul(mul(x, kept), a), add(mul(kept, alpha * a), alpha * a * (p - 1)));
}

}  // namespace

Tensor dropout1d(const Tensor& x, double p, bool training, Generator* generator) {
  return dropout_of_axes("dropout1d", x, 2, p, training, generator);
}
Tensor dropout2d(const Tensor& x, double p, bool training, Generator* generator) {
  // PyTorch reads three axes as (B, C, L) here.
  return x.dim() == 3 ? feature_dropout(x, p, training, generator)
                      : dropout_of_axes("dropout2d", x, 3, p, training, generator);
}
Tensor dropout3d(const Tensor& x, double p, bool training, Generator* generator) {
  return dropout_of_axes("dropout3d", x, 4, p, training, generator);
}
Tensor alpha_dropout(const Tensor& x, double p, bool training, Generator* generator) {
  return alpha_dropped("alpha_dropout", x, x.sizes(), p, training, generator);
}
Tensor feature_alpha_dropout(const Tensor& x, double p, bool training, Generator* generator) {
  const char* op = "feature_alpha_dropout";
  return alpha_dropped(op, x, sizes_of_features(op, x), p, training, generator);
}

}  // namespace levin
