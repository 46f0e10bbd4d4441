#pragma once
// Random numbers of further distributions. A generator defaults to default_generator().

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

namespace levin {

/// Normal numbers of these means and standard deviations, which broadcast; not differentiable (see
/// distributions::Normal::rsample).
Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator = nullptr);
Tensor normal(double mean, double std, const Shape& sizes, const TensorOptions& options = {});
/// Draws num_samples indices for each row of `weights` (..., C), which are nonnegative and need not add up to 1; int64.
/// Throws ValueError for too few nonzero weights without replacement.
Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement = false,
                   Generator* generator = nullptr);
/// Draws from the gamma distribution of these shapes and rate 1 (Marsaglia & Tsang 2000).
Tensor standard_gamma(const Tensor& alpha, Generator* generator = nullptr);
/// Draws from the Poisson distribution of these rates, as numbers of rate's type.
Tensor poisson(const Tensor& rate, Generator* generator = nullptr);

/// Fill t in place; not recorded.
const Tensor& exponential_(const Tensor& t, double lambd = 1.0, Generator* generator = nullptr);
const Tensor& cauchy_(const Tensor& t, double median = 0.0, double sigma = 1.0, Generator* generator = nullptr);
const Tensor& log_normal_(const Tensor& t, double mean = 1.0, double std = 2.0, Generator* generator = nullptr);
const Tensor& bernoulli_(const Tensor& t, double p = 0.5, Generator* generator = nullptr);
const Tensor& bernoulli_(const Tensor& t, const Tensor& p, Generator* generator = nullptr);
/// Whole numbers in [from, to).
const Tensor& random_(const Tensor& t, int64_t from, int64_t to, Generator* generator = nullptr);
const Tensor& geometric_(const Tensor& t, double p, Generator* generator = nullptr);

}  // namespace levin
