#pragma once
// Probability distributions with PyTorch's names: sample, log_prob, entropy and the Kullback-Leibler divergence.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

#include <limits>

namespace levin::distributions {

/// A batch of distributions. The batch has the sizes to which the parameters broadcast; an event of the multivariate
/// ones has one more axis. Methods that a distribution lacks throw ValueError.
class Distribution {
 public:
  virtual ~Distribution() = default;
  /// Draws numbers of sizes `sample_sizes` + batch + event, without a gradient.
  Tensor sample(const Shape& sample_sizes = {}, Generator* generator = nullptr) const;
  /// Draws numbers that are differentiable by the parameters.
  virtual Tensor rsample(const Shape& sample_sizes = {}, Generator* generator = nullptr) const;
  /// The logarithm of the density or probability of `value`, differentiable.
  virtual Tensor log_prob(const Tensor& value) const = 0;
  virtual Tensor entropy() const = 0;
  virtual Tensor mean() const = 0;
  virtual Tensor variance() const = 0;
  Tensor stddev() const;

  const Shape batch_sizes, event_sizes;

 protected:
  Distribution(const char* name, const Shape& batch, const Shape& event = {});
  /// Draws without recording.
  virtual Tensor draw(const Shape& sizes, Generator* generator) const = 0;
  /// `sample_sizes` followed by the batch's and the event's.
  Shape extended(const Shape& sample_sizes) const;

  const char* const name_;
};

class Normal : public Distribution {
 public:
  Normal(const Tensor& loc, const Tensor& scale);
  Tensor rsample(const Shape& sample_sizes = {}, Generator* generator = nullptr) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override { return loc; }
  Tensor variance() const override;
  Tensor cdf(const Tensor& value) const;
  Tensor icdf(const Tensor& probability) const;

  const Tensor loc, scale;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

class Uniform : public Distribution {
 public:
  Uniform(const Tensor& low, const Tensor& high);
  Tensor rsample(const Shape& sample_sizes = {}, Generator* generator = nullptr) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor low, high;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

class Exponential : public Distribution {
 public:
  explicit Exponential(const Tensor& rate);
  Tensor rsample(const Shape& sample_sizes = {}, Generator* generator = nullptr) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor rate;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// Of the probabilities or of their logits; the other tensor is computed.
class Bernoulli : public Distribution {
 public:
  explicit Bernoulli(const Tensor& probs, const Tensor& logits = {});
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override { return probs; }
  Tensor variance() const override;

  const Tensor probs, logits;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// Of weights (..., C), which are normalized, or of logits; samples are int64.
class Categorical : public Distribution {
 public:
  explicit Categorical(const Tensor& probs, const Tensor& logits = {});
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor logits;  ///< normalized: log-probabilities
  const Tensor probs;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// Samples of Gamma, Beta and Dirichlet have no gradient.
class Gamma : public Distribution {
 public:
  Gamma(const Tensor& concentration, const Tensor& rate);
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor concentration, rate;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

class Beta : public Distribution {
 public:
  Beta(const Tensor& concentration1, const Tensor& concentration0);
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor concentration1, concentration0;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// Of concentrations (..., K); an event is K probabilities.
class Dirichlet : public Distribution {
 public:
  explicit Dirichlet(const Tensor& concentration);
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor concentration;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// Of means (..., K) and covariances (..., K, K), or of their Cholesky factor.
class MultivariateNormal : public Distribution {
 public:
  explicit MultivariateNormal(const Tensor& loc, const Tensor& covariance_matrix, const Tensor& scale_tril = {});
  Tensor rsample(const Shape& sample_sizes = {}, Generator* generator = nullptr) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override { return loc; }
  Tensor variance() const override;

  const Tensor loc, scale_tril;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

// The divergence of q from p, in closed form.
Tensor kl_divergence(const Normal& p, const Normal& q);
Tensor kl_divergence(const Uniform& p, const Uniform& q);
Tensor kl_divergence(const Exponential& p, const Exponential& q);
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q);
Tensor kl_divergence(const Categorical& p, const Categorical& q);
Tensor kl_divergence(const Gamma& p, const Gamma& q);
Tensor kl_divergence(const Beta& p, const Beta& q);
Tensor kl_divergence(const Dirichlet& p, const Dirichlet& q);
Tensor kl_divergence(const MultivariateNormal& p, const MultivariateNormal& q);

}  // namespace levin::distributions
