// Creation of tensors.

#include "../errors.h"
#include "elementwise/common.h"
#include "spectral/complex.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/creation.h>
#include <levin/kernels/random.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace levin {

using namespace ops;

namespace {

Tensor filled(const Shape& sizes, const Scalar& value, DType dtype, const TensorOptions& options) {
  Tensor t = empty(sizes, {.dtype = dtype, .device = options.device, .requires_grad = options.requires_grad});
  if (is_complex(dtype)) {
    complex_fill(t, value);
    return t;
  }
  launch(kernels::fill, t.device(), {t.tensor_view(), TensorView::number(value, dtype)});
  LEVIN_TRACE("full", {}, {t}, {{"value", value}});
  return t;
}

/// Fills in absent fields of `options` from t.
TensorOptions merged(const Tensor& t, TensorOptions options) {
  if (!options.dtype) options.dtype = t.dtype();
  if (!options.device) options.device = t.device();
  return options;
}

PhiloxState reserve(Generator* generator, const Tensor& t, int64_t numel, int words) {
  Generator& g = generator ? *generator : default_generator();
  return g.reserve(kernels::random_blocks(numel, words), current_stream(t.device()));
}

void require_floating(const char* op, DType t) {
  if (!is_floating(t)) fail<DTypeError>("[{}] {} numbers are not floating; use randint or .dtype = kFloat32.", op, t);
}

using RandomKernel = kernels::Kernel<void(const kernels::RandomArgs&, Stream&)>;

/// Draws random numbers into memory of any layout.
void draw(const char* op, const RandomKernel& kernel, const Tensor& t, double p0, double p1, Generator* generator) {
  require_floating(op, t.dtype());
  no_grad guard;
  const Tensor target = t.is_contiguous() ? t : fresh(t.sizes(), t.dtype(), t.device());
  const int64_t even = t.numel() + t.numel() % 2;  // normal numbers come in pairs
  const PhiloxState state = reserve(generator, t, even, kernels::random_words(t.dtype()));
  launch(kernel, t.device(), {target.tensor_view(), state, p0, p1});
  if (!t.is_contiguous()) t.copy_(target);
  LEVIN_TRACE(op, {}, {t});
}

/// Replaces t's values by random ones, which do not depend on its previous history.
const Tensor& draw_in_place(const char* name, const RandomKernel& kernel, const Tensor& t, double p0, double p1,
                            Generator* generator) {
  if (!begin_in_place(name, t)) {
    draw(name, kernel, t, p0, p1, generator);
    end_in_place(t);
    return t;
  }
  return replace_in_place(name, t, [&](const Tensor& x) {
    const Tensor y = fresh(x.sizes(), x.dtype(), x.device());
    draw(name, kernel, y, p0, p1, generator);
    record(name, y, {x}, zero_gradient);
    return y;
  });
}

Tensor drawn(const char* op, const RandomKernel& kernel, const Shape& sizes, const TensorOptions& options) {
  require_floating(op, options.dtype.value_or(default_dtype()));
  Tensor t = empty(sizes, options);
  draw(op, kernel, t, 0.0, 1.0, options.generator);
  return t;
}

[[noreturn]] void bad_range(double start, double end, double step) {
  fail<ValueError>("[arange] steps of {} never lead from {} to {}; use a step of the other sign, not 0.", step, start,
                   end);
}

int64_t range_length(const Scalar& start, const Scalar& end, const Scalar& step, bool integers) {
  const double a = start.to<double>(), b = end.to<double>(), s = step.to<double>();
  if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(s) || s == 0 || (b - a) * s < 0) bad_range(a, b, s);
  if (!integers) return static_cast<int64_t>(std::ceil((b - a) / s));
  const int64_t length = end.to<int64_t>() - start.to<int64_t>(), by = step.to<int64_t>();
  return length / by + (length % by != 0);
}

}  // namespace

Tensor zeros(const Shape& sizes, const TensorOptions& options) {
  return filled(sizes, 0, options.dtype.value_or(default_dtype()), options);
}

Tensor ones(const Shape& sizes, const TensorOptions& options) {
  return filled(sizes, 1, options.dtype.value_or(default_dtype()), options);
}

Tensor full(const Shape& sizes, const Scalar& value, const TensorOptions& options) {
  const DType own = value.is_floating() ? default_dtype() : value.is_integral() ? DType::i64 : DType::boolean;
  return filled(sizes, value, options.dtype.value_or(own), options);
}

Tensor arange(const Scalar& end, const TensorOptions& options) { return arange(0, end, 1, options); }

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options) {
  const bool integers = !start.is_floating() && !end.is_floating() && !step.is_floating();
  TensorOptions chosen = options;
  if (!chosen.dtype) chosen.dtype = integers ? DType::i64 : default_dtype();
  refuse_bool("arange", *chosen.dtype, ".dtype = kInt64");
  Tensor t = empty({range_length(start, end, step, integers)}, chosen);
  launch(kernels::arange, t.device(),
         {t.tensor_view(), start.to<int64_t>(), step.to<int64_t>(), start.to<double>(), step.to<double>()});
  LEVIN_TRACE("arange", {}, {t}, {{"start", start}, {"end", end}, {"step", step}});
  return t;
}

Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options) {
  return arange(start, end, 1, options);
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& options) {
  if (steps < 0) fail<ValueError>("[linspace] {} steps are fewer than none; use 0 or more.", steps);
  refuse_bool("linspace", options.dtype.value_or(DType::f32), ".dtype = kFloat32");
  Tensor t = empty({steps}, options);
  launch(kernels::linspace, t.device(), {t.tensor_view(), start.to<double>(), end.to<double>()});
  return t;
}

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, const TensorOptions& options) {
  TensorOptions wide = options;
  wide.dtype = kFloat64;
  wide.requires_grad = false;
  const Tensor y = to(pow(Scalar(base), linspace(start, end, steps, wide)), options.dtype.value_or(default_dtype()));
  return options.requires_grad ? y.requires_grad_() : y;
}

Tensor eye(int64_t n, std::optional<int64_t> m, const TensorOptions& options) {
  const int64_t columns = m.value_or(n);
  Tensor t = zeros({n, columns}, options);
  TensorView diagonal = t.tensor_view();
  diagonal.sizes = {std::min(n, columns)};
  diagonal.strides = {columns + 1};
  launch(kernels::fill, t.device(), {diagonal, TensorView::number(1, t.dtype())});
  return t;
}

Tensor eye(int64_t n, const TensorOptions& options) { return eye(n, n, options); }

Tensor rand(const Shape& sizes, const TensorOptions& options) {
  return drawn("rand", kernels::uniform, sizes, options);
}
Tensor randn(const Shape& sizes, const TensorOptions& options) {
  return drawn("randn", kernels::normal, sizes, options);
}

Tensor randint(int64_t low, int64_t high, const Shape& sizes, const TensorOptions& options) {
  if (low >= high) fail<ValueError>("[randint] no integer lies in [{}, {}); high must exceed low.", low, high);
  TensorOptions chosen = options;
  if (!chosen.dtype) chosen.dtype = DType::i64;
  refuse_bool("randint", *chosen.dtype, "bernoulli");
  Tensor t = empty(sizes, chosen);
  launch(kernels::randint, t.device(), {t.tensor_view(), reserve(options.generator, t, t.numel(), 2), low, high});
  return t;
}

Tensor randperm(int64_t n, const TensorOptions& options) {
  if (n < 0) fail<ValueError>("[randperm] {} elements are fewer than none; use 0 or more.", n);
  std::vector<int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  Generator& g = options.generator ? *options.generator : default_generator();
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[g.below(i)]);
  return from_data(order, {n}, {.dtype = options.dtype.value_or(DType::i64), .device = options.device,
                                .requires_grad = options.requires_grad});
}

Tensor bernoulli(const Tensor& p, Generator* generator) {
  require_floating("bernoulli", p.dtype());
  no_grad guard;
  Tensor t = fresh(p.sizes(), p.dtype(), p.device());
  launch(kernels::bernoulli, t.device(),
         {t.tensor_view(), p.contiguous().tensor_view(), reserve(generator, t, t.numel(), 1)});
  return t;
}

Tensor empty_like(const Tensor& t, const TensorOptions& options) { return empty(t.sizes(), merged(t, options)); }
Tensor zeros_like(const Tensor& t, const TensorOptions& options) { return zeros(t.sizes(), merged(t, options)); }
Tensor ones_like(const Tensor& t, const TensorOptions& options) { return ones(t.sizes(), merged(t, options)); }
Tensor full_like(const Tensor& t, const Scalar& value, const TensorOptions& options) {
  return full(t.sizes(), value, merged(t, options));
}
Tensor rand_like(const Tensor& t, const TensorOptions& options) { return rand(t.sizes(), merged(t, options)); }
Tensor randn_like(const Tensor& t, const TensorOptions& options) { return randn(t.sizes(), merged(t, options)); }
Tensor randint_like(const Tensor& t, int64_t low, int64_t high, const TensorOptions& options) {
  return randint(low, high, t.sizes(), merged(t, options));
}

const Tensor& uniform_(const Tensor& t, double low, double high, Generator* generator) {
  if (!(low <= high)) fail<ValueError>("[uniform_] the range [{}, {}) is empty; low must not exceed high.", low, high);
  return draw_in_place("uniform_", kernels::uniform, t, low, high, generator);
}

const Tensor& normal_(const Tensor& t, double mean, double std, Generator* generator) {
  if (!(std >= 0)) fail<ValueError>("[normal_] a standard deviation of {} is impossible; use 0 or more.", std);
  return draw_in_place("normal_", kernels::normal, t, mean, std, generator);
}

}  // namespace levin
