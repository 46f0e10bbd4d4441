#include <levin/autograd/distributions.h>

#include "errors.h"
#include "ops/values.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/ops/random.h>

#include <cmath>
#include <numbers>

namespace levin::distributions {

namespace {

const double kLogTwoPi = std::log(2 * std::numbers::pi);

Shape common(const char* name, const Tensor& a, const Tensor& b) {
  return broadcast_shapes(a.sizes(), b.sizes(), name);
}
Shape without_last(const char* name, const Tensor& x) {
  if (x.dim() < 1) fail<ShapeError>("[{}] the parameter is (), a last axis is needed.", name);
  return ops::leading(x, 1);
}

void require(const char* name, const char* parameter, const Tensor& holds, const char* rule) {
  if (!all(holds).item<bool>()) fail<ValueError>("[{}] {} must be {}.", name, parameter, rule);
}
void require_positive(const char* name, const char* parameter, const Tensor& x) {
  require(name, parameter, gt(x.detach(), 0), "positive");
}

TensorOptions drawn_like(const Tensor& model, Generator* generator) {
  return {.dtype = model.dtype(), .device = model.device(), .generator = generator};
}

}  // namespace

Distribution::Distribution(const char* name, const Shape& batch, const Shape& event)
    : batch_sizes(batch), event_sizes(event), name_(name) {}

Shape Distribution::extended(const Shape& sample_sizes) const {
  return ops::joined(ops::joined(sample_sizes, batch_sizes), event_sizes);
}

Tensor Distribution::sample(const Shape& sample_sizes, Generator* generator) const {
  no_grad guard;
  return draw(extended(sample_sizes), generator);
}

Tensor Distribution::rsample(const Shape& sample_sizes, Generator* generator) const {
  if (!has_rsample()) fail<ValueError>("[{}] its samples have no gradient; use sample() and log_prob().", name_);
  return draw(extended(sample_sizes), generator);
}

Tensor Distribution::stddev() const { return sqrt(variance()); }

// Normal

Normal::Normal(const Tensor& l, const Tensor& s)
    : Distribution("Normal", common("Normal", l, s)),
      loc(broadcast_to(l, batch_sizes)),
      scale(broadcast_to(s, batch_sizes)) {
  require_positive("Normal", "scale", s);
}
Tensor Normal::draw(const Shape& sizes, Generator* generator) const {
  return addcmul(loc, randn(sizes, drawn_like(loc, generator)), scale);
}
Tensor Normal::log_prob(const Tensor& value) const {
  return sub(mul(square(div(sub(value, loc), scale)), -0.5), add(log(scale), 0.5 * kLogTwoPi));
}
Tensor Normal::entropy() const { return broadcast_to(add(log(scale), 0.5 + 0.5 * kLogTwoPi), batch_sizes); }
Tensor Normal::variance() const { return square(scale); }
Tensor Normal::cdf(const Tensor& value) const {
  return mul(erfc(mul(div(sub(loc, value), scale), 0.5 * std::numbers::sqrt2)), 0.5);
}
Tensor Normal::icdf(const Tensor& probability) const {
  return addcmul(loc, scale, mul(erfinv(sub(mul(probability, 2), 1)), std::numbers::sqrt2));
}

// Uniform

Uniform::Uniform(const Tensor& l, const Tensor& h)
    : Distribution("Uniform", common("Uniform", l, h)),
      low(broadcast_to(l, batch_sizes)),
      high(broadcast_to(h, batch_sizes)) {
  require("Uniform", "low", lt(l.detach(), h.detach()), "below high");
}
Tensor Uniform::draw(const Shape& sizes, Generator* generator) const {
  return addcmul(low, rand(sizes, drawn_like(low, generator)), sub(high, low));
}
Tensor Uniform::log_prob(const Tensor& value) const {
  const Tensor inside = logical_and(ge(value, low), lt(value, high));
  const double never = -std::numeric_limits<double>::infinity();
  return masked_fill(neg(log(broadcast_to(sub(high, low), inside.sizes()))), logical_not(inside), never);
}
Tensor Uniform::entropy() const { return log(sub(high, low)); }
Tensor Uniform::mean() const { return mul(add(low, high), 0.5); }
Tensor Uniform::variance() const { return mul(square(sub(high, low)), 1.0 / 12); }

// Exponential

Exponential::Exponential(const Tensor& r) : Distribution("Exponential", r.sizes()), rate(r) {
  require_positive("Exponential", "rate", r);
}
Tensor Exponential::draw(const Shape& sizes, Generator* generator) const {
  const Tensor u = rand(sizes, drawn_like(rate, generator));
  return div(neg(log(clamp(u, u.dtype() == kFloat64 ? 0x1p-54 : 0x1p-25))), rate);
}
Tensor Exponential::log_prob(const Tensor& value) const { return sub(log(rate), mul(rate, value)); }
Tensor Exponential::entropy() const { return rsub(log(rate), 1); }
Tensor Exponential::mean() const { return reciprocal(rate); }
Tensor Exponential::variance() const { return reciprocal(square(rate)); }

// Bernoulli

Bernoulli::Bernoulli(const Tensor& p, const Tensor& l)
    : Distribution("Bernoulli", (p.defined() ? p : l).sizes()),
      probs(p.defined() ? p : sigmoid(l)),
      logits(l.defined() ? l : logit(p)) {
  if (p.defined() == l.defined()) throw ValueError("[Bernoulli] give either probs or logits.");
  require("Bernoulli", "probs", logical_and(ge(probs.detach(), 0), le(probs.detach(), 1)), "between 0 and 1");
}
Tensor Bernoulli::draw(const Shape& sizes, Generator* generator) const {
  return bernoulli(expand(probs, sizes).contiguous(), generator);
}
Tensor Bernoulli::log_prob(const Tensor& value) const {
  const Shape sizes = broadcast_shapes(value.sizes(), logits.sizes(), "Bernoulli");
  return neg(bce_with_logits(expand(logits, sizes), expand(value, sizes), {.reduction = Reduction::none}));
}
Tensor Bernoulli::entropy() const { return bce_with_logits(logits, probs, {.reduction = Reduction::none}); }
Tensor Bernoulli::variance() const { return mul(probs, rsub(probs, 1)); }

// Categorical

namespace {

/// Computes log-probabilities from weights or from logits.
Tensor normalized_logits(const Tensor& probs, const Tensor& logits) {
  if (probs.defined() == logits.defined()) throw ValueError("[Categorical] give either probs or logits.");
  if (logits.defined()) return log_softmax(logits, -1);
  require("Categorical", "probs", ge(probs.detach(), 0), "0 or more");
  return log(div(probs, sum(probs, -1, true)));
}

}  // namespace

Categorical::Categorical(const Tensor& p, const Tensor& l)
    : Distribution("Categorical", without_last("Categorical", p.defined() ? p : l)),
      logits(normalized_logits(p, l)),
      probs(exp(logits)) {}
Tensor Categorical::draw(const Shape& sizes, Generator* generator) const {
  const int64_t classes = probs.size(-1);
  const Tensor rows = reshape(probs, {-1, classes});
  const int64_t samples = sizes.numel() / std::max<int64_t>(1, rows.size(0));
  if (sizes.numel() == 0) return zeros(sizes, {.dtype = kInt64, .device = probs.device()});
  return reshape(transpose(multinomial(rows, samples, true, generator), 0, 1), sizes);
}
Tensor Categorical::log_prob(const Tensor& value) const {
  const Shape sizes = broadcast_shapes(value.sizes(), batch_sizes, "Categorical");
  Shape of_logits = sizes;
  of_logits.push_back(logits.size(-1));
  const Tensor index = unsqueeze(expand(to(value, kInt64), sizes), -1);
  return squeeze(gather(expand(logits, of_logits), -1, index.contiguous()), -1);
}
Tensor Categorical::entropy() const {
  const Tensor used = gt(probs.detach(), 0);  // p log p is 0 for p = 0
  return neg(sum(mul(probs, where(used, logits, 0.0)), -1));
}
Tensor Categorical::mean() const { throw ValueError("[Categorical] classes have no mean."); }
Tensor Categorical::variance() const { throw ValueError("[Categorical] classes have no variance."); }

// Gamma, Beta, Dirichlet

Gamma::Gamma(const Tensor& c, const Tensor& r)
    : Distribution("Gamma", common("Gamma", c, r)),
      concentration(broadcast_to(c, batch_sizes)),
      rate(broadcast_to(r, batch_sizes)) {
  require_positive("Gamma", "concentration", c);
  require_positive("Gamma", "rate", r);
}
Tensor Gamma::draw(const Shape& sizes, Generator* generator) const {
  return div(standard_gamma(expand(concentration, sizes).contiguous(), generator), rate);
}
Tensor Gamma::log_prob(const Tensor& value) const {
  const Tensor power = sub(mul(concentration, log(rate)), lgamma(concentration));
  return sub(add(power, xlogy(sub(concentration, 1), value)), mul(rate, value));
}
Tensor Gamma::entropy() const {
  return add(sub(concentration, log(rate)),
             add(lgamma(concentration), mul(rsub(concentration, 1), digamma(concentration))));
}
Tensor Gamma::mean() const { return div(concentration, rate); }
Tensor Gamma::variance() const { return div(concentration, square(rate)); }

namespace {

/// log B(c) = sum of lgamma(c) - lgamma(sum of c) along the last axis.
Tensor log_beta(const Tensor& c) { return sub(sum(lgamma(c), -1), lgamma(sum(c, -1))); }

Tensor dirichlet_entropy(const Tensor& c) {
  const Tensor total = sum(c, -1), k = full_like(total.detach(), static_cast<double>(c.size(-1)));
  return sub(sub(log_beta(c), mul(sub(k, total), digamma(total))), sum(mul(sub(c, 1), digamma(c)), -1));
}

Tensor dirichlet_divergence(const Tensor& p, const Tensor& q) {
  const Tensor slope = sub(digamma(p), unsqueeze(digamma(sum(p, -1)), -1));
  return add(sub(log_beta(q), log_beta(p)), sum(mul(sub(p, q), slope), -1));
}

Tensor both(const Beta& b) {
  return stack({expand(b.concentration1, b.batch_sizes), expand(b.concentration0, b.batch_sizes)}, -1);
}

}  // namespace

Beta::Beta(const Tensor& a, const Tensor& b)
    : Distribution("Beta", common("Beta", a, b)),
      concentration1(broadcast_to(a, batch_sizes)),
      concentration0(broadcast_to(b, batch_sizes)) {
  require_positive("Beta", "concentration1", a);
  require_positive("Beta", "concentration0", b);
}
Tensor Beta::draw(const Shape& sizes, Generator* generator) const {
  const Tensor x = standard_gamma(expand(concentration1, sizes).contiguous(), generator);
  const Tensor y = standard_gamma(expand(concentration0, sizes).contiguous(), generator);
  return div(x, add(x, y));
}
Tensor Beta::log_prob(const Tensor& value) const {
  const Tensor powers = add(xlogy(sub(concentration1, 1), value), xlogy(sub(concentration0, 1), rsub(value, 1)));
  return sub(powers, log_beta(both(*this)));
}
Tensor Beta::entropy() const { return dirichlet_entropy(both(*this)); }
Tensor Beta::mean() const { return div(concentration1, add(concentration1, concentration0)); }
Tensor Beta::variance() const {
  const Tensor total = add(concentration1, concentration0);
  return div(mul(concentration1, concentration0), mul(square(total), add(total, 1)));
}

Dirichlet::Dirichlet(const Tensor& c)
    : Distribution("Dirichlet", without_last("Dirichlet", c), {c.size(-1)}), concentration(c) {
  require_positive("Dirichlet", "concentration", c);
}
Tensor Dirichlet::draw(const Shape& sizes, Generator* generator) const {
  const Tensor x = standard_gamma(expand(concentration, sizes).contiguous(), generator);
  return div(x, sum(x, -1, true));
}
Tensor Dirichlet::log_prob(const Tensor& value) const {
  return sub(sum(xlogy(sub(concentration, 1), value), -1), log_beta(concentration));
}
Tensor Dirichlet::entropy() const { return dirichlet_entropy(concentration); }
Tensor Dirichlet::mean() const { return div(concentration, sum(concentration, -1, true)); }
Tensor Dirichlet::variance() const {
  const Tensor total = sum(concentration, -1, true), m = div(concentration, total);
  return div(mul(m, rsub(m, 1)), add(total, 1));
}

// Multivariate normal

namespace {

Tensor factor_of(const Tensor& covariance, const Tensor& scale_tril) {
  if (covariance.defined() == scale_tril.defined())
    throw ValueError("[MultivariateNormal] give either covariance_matrix or scale_tril.");
  return scale_tril.defined() ? scale_tril : linalg::cholesky(covariance);
}

Tensor half_log_det(const Tensor& factor) { return sum(log(diagonal(factor, 0, -2, -1)), -1); }

/// |L^-1 x|^2 for vectors x (..., K).
Tensor mahalanobis(const Tensor& factor, const Tensor& x) {
  return sum(square(linalg::solve_triangular(factor, unsqueeze(x, -1))), Axes{-2, -1});
}

}  // namespace

MultivariateNormal::MultivariateNormal(const Tensor& l, const Tensor& covariance, const Tensor& factor)
    : Distribution("MultivariateNormal",
                   broadcast_shapes(
                       without_last("MultivariateNormal", l),
                       without_last("MultivariateNormal", select(covariance.defined() ? covariance : factor, -1, 0)),
                       "MultivariateNormal"),
                   {l.size(-1)}),
      loc(l),
      scale_tril(factor_of(covariance, factor)) {}
Tensor MultivariateNormal::draw(const Shape& sizes, Generator* generator) const {
  const Tensor z = randn(sizes, drawn_like(loc, generator));
  return add(loc, squeeze(matmul(scale_tril, unsqueeze(z, -1)), -1));
}
Tensor MultivariateNormal::log_prob(const Tensor& value) const {
  const double constant = 0.5 * static_cast<double>(loc.size(-1)) * kLogTwoPi;
  return sub(mul(mahalanobis(scale_tril, sub(value, loc)), -0.5), add(half_log_det(scale_tril), constant));
}
Tensor MultivariateNormal::entropy() const {
  const double constant = 0.5 * static_cast<double>(loc.size(-1)) * (1 + kLogTwoPi);
  return broadcast_to(add(half_log_det(scale_tril), constant), batch_sizes);
}
Tensor MultivariateNormal::variance() const { return sum(square(scale_tril), -1); }

// Divergences

Tensor kl_divergence(const Normal& p, const Normal& q) {
  const Tensor ratio = square(div(p.scale, q.scale)), shift = square(div(sub(p.loc, q.loc), q.scale));
  return mul(sub(sub(add(ratio, shift), 1), log(ratio)), 0.5);
}
Tensor kl_divergence(const Uniform& p, const Uniform& q) {
  const Tensor inside = logical_and(ge(p.low, q.low), le(p.high, q.high));
  const Tensor ratio = log(div(sub(q.high, q.low), sub(p.high, p.low)));
  return where(inside, ratio, std::numeric_limits<double>::infinity());
}
Tensor kl_divergence(const Exponential& p, const Exponential& q) {
  const Tensor ratio = div(q.rate, p.rate);
  return sub(sub(ratio, log(ratio)), 1);
}
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q) {
  const auto part = [](const Tensor& a, const Tensor& b) { return sub(xlogy(a, a), xlogy(a, b)); };
  return add(part(p.probs, q.probs), part(rsub(p.probs, 1), rsub(q.probs, 1)));
}
Tensor kl_divergence(const Categorical& p, const Categorical& q) {
  const Tensor used = gt(p.probs.detach(), 0);
  return sum(mul(p.probs, where(used, sub(p.logits, q.logits), 0.0)), -1);
}
Tensor kl_divergence(const Gamma& p, const Gamma& q) {
  const Tensor powers =
      add(mul(q.concentration, log(div(p.rate, q.rate))), sub(lgamma(q.concentration), lgamma(p.concentration)));
  const Tensor slope = mul(sub(p.concentration, q.concentration), digamma(p.concentration));
  return add(add(powers, slope), mul(sub(q.rate, p.rate), div(p.concentration, p.rate)));
}
Tensor kl_divergence(const Beta& p, const Beta& q) { return dirichlet_divergence(both(p), both(q)); }
Tensor kl_divergence(const Dirichlet& p, const Dirichlet& q) {
  return dirichlet_divergence(p.concentration, q.concentration);
}
Tensor kl_divergence(const MultivariateNormal& p, const MultivariateNormal& q) {
  const Tensor spread = sum(square(linalg::solve_triangular(q.scale_tril, p.scale_tril)), Axes{-2, -1});
  const Tensor shift = mahalanobis(q.scale_tril, sub(q.loc, p.loc));
  const auto k = static_cast<double>(p.loc.size(-1));
  return add(sub(half_log_det(q.scale_tril), half_log_det(p.scale_tril)), mul(sub(add(spread, shift), k), 0.5));
}

}  // namespace levin::distributions
