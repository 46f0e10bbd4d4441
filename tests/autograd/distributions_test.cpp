// Moments of samples, within six standard errors; densities are cases of tests/cases/distributions.cpp.
#include <levin/autograd/autograd.h>
#include <levin/autograd/distributions.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;

namespace {

constexpr int64_t kSamples = 20'000;

/// Checks the mean and the variance of samples (n, ...) of a distribution.
void check_samples(const Tensor& samples, const Tensor& mean, const Tensor& variance) {
  const Tensor x = samples.to(kFloat64).reshape({samples.size(0), -1});
  const auto m = mean.to(kFloat64).expand(Shape(samples.sizes().begin() + 1, samples.sizes().end())).reshape({-1});
  const auto v = variance.to(kFloat64).expand(Shape(samples.sizes().begin() + 1, samples.sizes().end())).reshape({-1});
  const auto n = static_cast<double>(x.size(0));
  for (int64_t i = 0; i < x.size(1); ++i) {
    const Tensor column = x.select(1, i);
    const double expected = m[i].item<double>(), spread = v[i].item<double>();
    CHECK(std::abs(column.mean().item<double>() - expected) < 6 * std::sqrt(spread / n));
    const Tensor squares = square(column - expected);
    CHECK(std::abs(squares.mean().item<double>() - spread) < 6 * std::sqrt(squares.var().item<double>() / n));
  }
}

void check_distribution(const distributions::Distribution& d) {
  check_samples(d.sample({kSamples}), d.mean(), d.variance());
}

}  // namespace

TEST_CASE("samples of distributions have their means and variances") {
  manual_seed(11);
  const Tensor a = tensor({0.5, 2.0}), b = tensor({1.5, 0.7});
  check_distribution(distributions::Normal(a, b));
  check_distribution(distributions::Uniform(-a, b));
  check_distribution(distributions::Exponential(a));
  check_distribution(distributions::Bernoulli(tensor({0.2, 0.9})));
  check_distribution(distributions::Gamma(a, b));
  check_distribution(distributions::Gamma(tensor({0.1, 30.0}), b));
  check_distribution(distributions::Beta(a, b));
  check_distribution(distributions::Dirichlet(tensor({0.5, 2.0, 3.0})));
  const Tensor factor = tensor({{1.0, 0.0}, {0.5, 2.0}});
  const distributions::MultivariateNormal normal(a, {}, factor);
  check_distribution(normal);
  const Tensor centered = normal.sample({kSamples}) - a;
  const double covariance = (centered.select(1, 0) * centered.select(1, 1)).mean().item<double>();
  CHECK(std::abs(covariance - 0.5) < 0.1);
}

TEST_CASE("parameters of distributions broadcast, and so do means and variances") {
  const Tensor three = tensor({1.0, 2.0, 3.0}), one = tensor(2.0);
  for (const Shape& sizes : {distributions::Normal(three, one).variance().sizes(),
                             distributions::Normal(one, three).mean().sizes(),
                             distributions::Normal(one, three).stddev().sizes(),
                             distributions::Uniform(tensor(0.0), three).low.sizes(),
                             distributions::Gamma(one, three).concentration.sizes(),
                             distributions::Beta(three, one).concentration0.sizes()})
    CHECK(sizes == Shape{3});
}

TEST_CASE("rsample is differentiable, sample is not") {
  manual_seed(3);
  const Tensor loc = tensor({0.5, 2.0}).requires_grad_(), scale = tensor({1.5, 0.7}).requires_grad_();
  const distributions::Normal normal(loc, scale);
  CHECK(normal.has_rsample());
  CHECK_FALSE(distributions::Gamma(scale, scale).has_rsample());
  CHECK_FALSE(normal.sample({4}).requires_grad());
  const Tensor x = normal.rsample({3});
  CHECK(x.sizes() == Shape{3, 2});
  x.sum().backward();
  CHECK(equal(loc.grad(), full({2}, 3.0)));
  CHECK(allclose(scale.grad() * scale, (x - loc).sum(0), {.atol = 1e-5}));
}

TEST_CASE("categorical samples and multinomial draw each class as often as its weight says") {
  manual_seed(5);
  const Tensor weights = tensor({{1.0, 0.0, 3.0}, {2.0, 2.0, 4.0}});
  const Tensor drawn = multinomial(weights, kSamples, true);
  CHECK(drawn.dtype() == kInt64);
  for (int64_t row = 0; row < 2; ++row) {
    const Tensor counts = bincount(drawn[row], {}, 3);
    for (int64_t c = 0; c < 3; ++c) {
      const double p = weights[row][c].item<double>() / weights[row].sum().item<double>();
      const double error = std::abs(static_cast<double>(counts[c].item<int64_t>()) / kSamples - p);
      CHECK(error <= 6 * std::sqrt(p * (1 - p) / kSamples));
    }
  }
  const Tensor without = multinomial(weights.expand({2, 3}), 2);
  CHECK(without.sizes() == Shape{2, 2});
  CHECK_FALSE(any(without.select(0, 0) == 1).item<bool>());  // weight 0 is never drawn
  for (int64_t row = 0; row < 2; ++row) CHECK(without[row][0].item<int64_t>() != without[row][1].item<int64_t>());
  const Tensor classes = distributions::Categorical(weights).sample({4, 5});
  CHECK(classes.sizes() == Shape{4, 5, 2});
  CHECK_FALSE(any(classes.select(2, 0) == 1).item<bool>());
  CHECK_THROWS_WITH_AS(multinomial(weights, 3), doctest::Contains("3 samples of 2 nonzero weights"), ValueError);
  CHECK_THROWS_WITH_AS(multinomial(-weights, 1), doctest::Contains("a weight is negative"), ValueError);
}

TEST_CASE("random numbers in place and of the Poisson distribution have their moments") {
  manual_seed(7);
  const Tensor x = empty({kSamples, 1});
  check_samples(exponential_(x, 2.0), tensor({0.5}), tensor({0.25}));
  check_samples(geometric_(x, 0.25), tensor({4.0}), tensor({12.0}));
  check_samples(log(log_normal_(x, 0.5, 2.0)), tensor({0.5}), tensor({4.0}));
  CHECK(std::abs(cauchy_(x, 3.0, 0.1).median().item<double>() - 3) < 0.02);
  check_samples(normal(tensor({1.0, -1.0}).expand({kSamples, 2}), tensor({2.0, 0.5})), tensor({1.0, -1.0}),
                tensor({4.0, 0.25}));
  check_samples(normal(1.0, 2.0, {kSamples, 1}), tensor({1.0}), tensor({4.0}));
  check_samples(poisson(tensor({0.3, 7.0, 200.0}).expand({kSamples, 3}).contiguous()), tensor({0.3, 7.0, 200.0}),
                tensor({0.3, 7.0, 200.0}));
  CHECK_THROWS_WITH_AS(exponential_(x, 0.0), doctest::Contains("[exponential_] lambd is 0"), ValueError);
  CHECK_THROWS_WITH_AS(poisson(tensor({-1.0})), doctest::Contains("[poisson] rate must not be negative"), ValueError);
  CHECK_THROWS_WITH_AS(standard_gamma(tensor({0.0})), doctest::Contains("alpha must be positive"), ValueError);
}
