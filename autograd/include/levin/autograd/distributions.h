#pragma once
// Probability distributions with PyTorch's names: sample, log_prob, entropy and the Kullback-Leibler divergence.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

#include <limits>

namespace levin::distributions {

/// A batch of distributions. The batch has the sizes to which the parameters broadcast; an event of the multivariate
/// ones has one more axis. The parameters have one floating dtype and device, which are those of samples and results.
/// Constructors throw ValueError for parameters outside of their range and ShapeError for sizes that do not broadcast;
/// methods that a distribution lacks throw ValueError. A generator defaults to default_generator().
class Distribution {
 public:
  virtual ~Distribution() = default;
  /// Draws numbers of sizes `sample_sizes` + batch + event, without a gradient.
  Tensor sample(const Shape& sample_sizes = {}, Generator* generator = nullptr) const;
  /// Draws numbers of the same sizes that are differentiable by the parameters (reparameterization). Throws ValueError
  /// unless has_rsample().
  virtual Tensor rsample(const Shape& sample_sizes = {}, Generator* generator = nullptr) const;
  /// True if samples are differentiable functions of the parameters.
  virtual bool has_rsample() const { return false; }
  /// Returns the logarithm of the density or probability of `value`, (..., batch, event), differentiable by value and
  /// parameters; the shape is (..., batch).
  virtual Tensor log_prob(const Tensor& value) const = 0;
  /// Returns the entropy in nats, the differential one of continuous distributions.
  virtual Tensor entropy() const = 0;
  /// Return the mean, the variance, and its square root, of sizes that broadcast to batch + event.
  virtual Tensor mean() const = 0;
  virtual Tensor variance() const = 0;
  Tensor stddev() const;

  /// Sizes of the batch and of one event; the latter are () unless events are vectors.
  const Shape batch_sizes, event_sizes;

 protected:
  /// `name` begins messages; `batch` and `event` become batch_sizes and event_sizes.
  Distribution(const char* name, const Shape& batch, const Shape& event = {});
  /// Draws, differentiably if has_rsample().
  virtual Tensor draw(const Shape& sizes, Generator* generator) const = 0;
  /// `sample_sizes` followed by the batch's and the event's.
  Shape extended(const Shape& sample_sizes) const;

  const char* const name_;
};

/// The normal distribution with mean `loc` and standard deviation `scale` > 0.
class Normal : public Distribution {
 public:
  Normal(const Tensor& loc, const Tensor& scale);
  bool has_rsample() const override { return true; }
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override { return loc; }
  Tensor variance() const override;
  /// Return the probability of a smaller number than `value`, and the number below which lies this probability.
  Tensor cdf(const Tensor& value) const;
  Tensor icdf(const Tensor& probability) const;

  const Tensor loc, scale;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// The uniform distribution on [low, high), with low < high.
class Uniform : public Distribution {
 public:
  Uniform(const Tensor& low, const Tensor& high);
  bool has_rsample() const override { return true; }
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor low, high;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// The exponential distribution with density rate exp(-rate x) for x >= 0, and rate > 0.
class Exponential : public Distribution {
 public:
  explicit Exponential(const Tensor& rate);
  bool has_rsample() const override { return true; }
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor rate;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// 1 with probability `probs`, else 0. Exactly one of probs, in [0, 1], and logits = log(probs / (1 - probs)) is given;
/// the other is computed.
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

/// A class 0 to C - 1, int64. Exactly one of `probs`, weights (..., C) of 0 or more that need not add up to 1, and
/// `logits`, logarithms (..., C) of such weights, is given. It has no mean and no variance.
class Categorical : public Distribution {
 public:
  explicit Categorical(const Tensor& probs, const Tensor& logits = {});
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

  const Tensor logits;  ///< normalized: log-probabilities
  const Tensor probs;   ///< normalized: probabilities

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// The gamma distribution with density proportional to x^(concentration - 1) exp(-rate x); both parameters are
/// positive. Samples of Gamma, Beta and Dirichlet have no gradient.
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

/// The beta distribution on (0, 1) with density proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1);
/// both parameters are positive.
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

/// The Dirichlet distribution of a positive `concentration` (..., K); an event is K probabilities that add up to 1.
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

/// The normal distribution of vectors with mean `loc` (..., K). Exactly one of covariance_matrix (..., K, K), symmetric
/// and positive definite, and its Cholesky factor `scale_tril` is given.
class MultivariateNormal : public Distribution {
 public:
  explicit MultivariateNormal(const Tensor& loc, const Tensor& covariance_matrix, const Tensor& scale_tril = {});
  bool has_rsample() const override { return true; }
  Tensor log_prob(const Tensor& value) const override;
  Tensor entropy() const override;
  Tensor mean() const override { return loc; }
  Tensor variance() const override;

  const Tensor loc, scale_tril;

 protected:
  Tensor draw(const Shape& sizes, Generator* generator) const override;
};

/// Return the Kullback-Leibler divergence, the mean of log p(x) - log q(x) for x of p, in closed form; of the shape to
/// which the batches broadcast. Infinite where q excludes what p allows.
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
