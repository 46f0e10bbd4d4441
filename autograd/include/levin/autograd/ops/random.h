#pragma once
// Random numbers of further distributions. A generator defaults to default_generator().

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

namespace levin {

/// Normal numbers of these means and standard deviations, which broadcast; not differentiable (see
/// distributions::Normal::rsample).
Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator = nullptr);
Tensor normal(double mean, double std, const Shape& sizes, const TensorOptions& options = {});
/// Draws num_samples indices for each row of `weights` (..., C), which are nonnegative and need not add up to 1.
/// Returns (..., num_samples) int64. Throws ValueError for too few nonzero weights without replacement.
Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement = false,
                   Generator* generator = nullptr);
/// Draws from the gamma distribution of these shapes and rate 1 (Marsaglia & Tsang 2000).
Tensor standard_gamma(const Tensor& alpha, Generator* generator = nullptr);
/// Draws from the Poisson distribution of these rates, as numbers of rate's type.
Tensor poisson(const Tensor& rate, Generator* generator = nullptr);

// These functions fill t in place and return it; they are not recorded. exponential_, random_ and geometric_ throw
// ValueError for parameters outside of their range.

/// Exponentially distributed numbers with rate lambd.
const Tensor& exponential_(const Tensor& t, double lambd = 1.0, Generator* generator = nullptr);
/// Numbers of the Cauchy distribution with this median and the half width sigma at half maximum.
const Tensor& cauchy_(const Tensor& t, double median = 0.0, double sigma = 1.0, Generator* generator = nullptr);
/// Exponentials of normal numbers with this mean and standard deviation.
const Tensor& log_normal_(const Tensor& t, double mean = 1.0, double std = 2.0, Generator* generator = nullptr);
/// 1 with probability p, which may be given per element, else 0.
const Tensor& bernoulli_(const Tensor& t, double p = 0.5, Generator* generator = nullptr);
const Tensor& bernoulli_(const Tensor& t, const Tensor& p, Generator* generator = nullptr);
/// Whole numbers in [from, to).
const Tensor& random_(const Tensor& t, int64_t from, int64_t to, Generator* generator = nullptr);
/// Numbers of trials, 1 or more, up to the first success with probability p in (0, 1).
const Tensor& geometric_(const Tensor& t, double p, Generator* generator = nullptr);

}  // namespace levin
