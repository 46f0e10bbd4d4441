// Random numbers made of uniform and normal ones.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/random.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/statistics.h>
#include <levin/autograd/ops/view.h>

#include <cmath>

namespace levin {

using namespace ops;

namespace {

/// Uniform numbers in (0, 1), whose logarithm is finite.
Tensor open_uniform(const Shape& sizes, const TensorOptions& options, Generator* generator) {
  const Tensor u = uniform_(empty(sizes, options), 0.0, 1.0, generator);
  return clamp(u, u.dtype() == kFloat64 ? 0x1p-54 : 0x1p-25);
}

/// The type in which numbers of t's type are computed.
TensorOptions computed_like(const Tensor& t) { return {.dtype = statistics_type(t), .device = t.device()}; }

}  // namespace

Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator) {
  no_grad guard;
  const Shape sizes = broadcast_shapes(mean.sizes(), std.sizes(), "normal");
  if (any(lt(std, 0)).item<bool>()) throw ValueError("[normal] std has a negative element.");
  const Tensor z = normal_(empty(sizes, like(mean)), 0.0, 1.0, generator);
  return addcmul(mean, z, std);
}
Tensor normal(double mean, double std, const Shape& sizes, const TensorOptions& options) {
  return normal_(empty(sizes, options), mean, std, options.generator);
}

Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement, Generator* generator) {
  no_grad guard;
  check_floating("multinomial", weights, "weights");
  if (weights.dim() < 1 || num_samples < 1)
    fail<ValueError>("[multinomial] {} samples of weights {}; at least one of a vector is needed.", num_samples,
                     weights.sizes());
  const Tensor w = widened(weights);
  if (any(logical_not(ge(w, 0))).item<bool>()) throw ValueError("[multinomial] a weight is negative or not a number.");
  const auto choices = amin(count_nonzero(w, -1)).item<int64_t>();
  if (choices < (replacement ? 1 : num_samples))
    fail<ValueError>("[multinomial] {} samples of {} nonzero weights; fewer samples, or replacement = true.",
                     num_samples, choices);
  if (!replacement) {
    // The largest of w / e with exponential e are a sample without replacement (Efraimidis & Spirakis 2006).
    const Tensor e = exponential_(empty(w.sizes(), like(w)), 1.0, generator);
    return topk(div(w, e), num_samples, -1).indices;
  }
  Shape sizes = w.sizes();
  sizes[w.dim() - 1] = num_samples;
  const Tensor sums = cumsum(w, -1), total = narrow(sums, -1, w.size(-1) - 1, 1);
  const Tensor at = mul(uniform_(empty(sizes, like(w)), 0.0, 1.0, generator), total);
  const Tensor found = searchsorted(sums, at, true);
  // Rounding may lead past the last nonzero weight.
  const Tensor last = sub(rsub(argmax(flip(gt(w, 0).to(kInt64), -1), -1, true), w.size(-1)), 1);
  return minimum(found, last);
}

Tensor standard_gamma(const Tensor& alpha, Generator* generator) {
  no_grad guard;
  check_floating("standard_gamma", alpha, "alpha");
  const Tensor shape = to(alpha, statistics_type(alpha));
  if (any(logical_not(gt(shape, 0))).item<bool>()) throw ValueError("[standard_gamma] alpha must be positive.");
  // A shape below 1 is drawn with 1 more, and multiplied by u^(1 / alpha).
  const Tensor small = lt(shape, 1), d = sub(add(shape, small.to(shape.dtype())), 1.0 / 3);
  const Tensor c = rsqrt(mul(d, 9));
  Tensor result = zeros_like(shape), open = ones(shape.sizes(), {.dtype = kBool, .device = shape.device()});
  while (any(open).item<bool>()) {
    const Tensor x = normal_(empty(shape.sizes(), like(shape)), 0.0, 1.0, generator);
    const Tensor v = pow(add(mul(c, x), 1), 3), u = open_uniform(shape.sizes(), like(shape), generator);
    const Tensor positive = gt(v, 0),
                 bound = add(mul(square(x), 0.5), mul(d, add(sub(log(where(positive, v, 1)), v), 1)));
    const Tensor accepted = logical_and(logical_and(positive, lt(log(u), bound)), open);
    result = where(accepted, mul(d, v), result);
    open = logical_and(open, logical_not(accepted));
  }
  const Tensor factor = pow(open_uniform(shape.sizes(), like(shape), generator), reciprocal(shape));
  return to(where(small, mul(result, factor), result), alpha.dtype());
}

Tensor poisson(const Tensor& rate, Generator* generator) {
  no_grad guard;
  check_floating("poisson", rate, "rate");
  const Tensor lambda = to(rate, kFloat64);
  if (any(logical_not(ge(lambda, 0))).item<bool>()) throw ValueError("[poisson] rate must not be negative.");
  // Counts the events until their waiting times pass 1. Large rates are sums of gamma-distributed waiting times.
  Tensor rest = lambda, count = zeros_like(lambda);
  while (any(gt(rest, 30.0)).item<bool>()) {  // Ahrens & Dieter 1974
    const Tensor large = gt(rest, 30.0), m = clamp(floor(mul(rest, 7.0 / 8)), 1.0);
    const Tensor time = standard_gamma(m, generator), within = le(time, rest);
    const Tensor p = clamp(div(rest, time), 0.0, 1.0);
    // If event m is later, the m - 1 events before it are uniform: a binomial number of them is within.
    Tensor before = zeros_like(rest);
    const auto tries =
        static_cast<int64_t>(amax(where(logical_and(large, logical_not(within)), m, 0.0)).item<double>());
    for (int64_t i = 1; i < tries; ++i) {
      const Tensor hit = lt(open_uniform(rest.sizes(), like(rest), generator), p);
      before = add(before, logical_and(hit, lt(full_like(m, static_cast<double>(i)), m)).to(kFloat64));
    }
    count = where(large, add(count, where(within, m, before)), count);
    rest = where(large, where(within, sub(rest, time), 0.0), rest);
  }
  const Tensor limit = exp(neg(rest));
  Tensor product = open_uniform(rest.sizes(), like(rest), generator);
  while (any(gt(product, limit)).item<bool>()) {
    const Tensor open = gt(product, limit);
    count = add(count, open.to(kFloat64));
    product = where(open, mul(product, open_uniform(rest.sizes(), like(rest), generator)), product);
  }
  return to(count, rate.dtype());
}

const Tensor& exponential_(const Tensor& t, double lambd, Generator* generator) {
  no_grad guard;
  if (!(lambd > 0)) fail<ValueError>("[exponential_] lambd is {}. Give a positive number.", lambd);
  return t.copy_(mul(log(open_uniform(t.sizes(), computed_like(t), generator)), -1.0 / lambd));
}

const Tensor& cauchy_(const Tensor& t, double median, double sigma, Generator* generator) {
  no_grad guard;
  const Tensor u = open_uniform(t.sizes(), computed_like(t), generator);
  return t.copy_(add(mul(tan(mul(sub(u, 0.5), 3.14159265358979323846)), sigma), median));
}

const Tensor& log_normal_(const Tensor& t, double mean, double std, Generator* generator) {
  no_grad guard;
  return t.copy_(exp(normal_(empty(t.sizes(), computed_like(t)), mean, std, generator)));
}

const Tensor& bernoulli_(const Tensor& t, double p, Generator* generator) {
  no_grad guard;
  return t.copy_(bernoulli(full(t.sizes(), p, {.dtype = default_dtype(), .device = t.device()}), generator));
}
const Tensor& bernoulli_(const Tensor& t, const Tensor& p, Generator* generator) {
  no_grad guard;
  return t.copy_(bernoulli(expand(p, t.sizes()).contiguous(), generator));
}
const Tensor& random_(const Tensor& t, int64_t from, int64_t to, Generator* generator) {
  no_grad guard;
  if (from >= to) fail<ValueError>("[random_] from {} must be below to {}.", from, to);
  return t.copy_(randint(from, to, t.sizes(), {.dtype = kInt64, .device = t.device(), .generator = generator}));
}

const Tensor& geometric_(const Tensor& t, double p, Generator* generator) {
  no_grad guard;
  if (!(p > 0 && p < 1)) fail<ValueError>("[geometric_] p is {}. Give a number between 0 and 1.", p);
  return t.copy_(ceil(div(log(open_uniform(t.sizes(), computed_like(t), generator)), std::log1p(-p))));
}

}  // namespace levin
