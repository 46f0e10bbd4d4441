#include "cases/cases.h"
#include "cases/composed/composition.h"

#include <levin/autograd/distributions.h>

namespace levin::test {

namespace {

using namespace distributions;

const Values kRates = uniform(0.4, 3), kShares = uniform(0.1, 0.9);

/// Lower triangles with a positive diagonal.
InputSpec factor(const Shape& sizes) {
  const int64_t n = sizes.back();
  InputSpec s = input(sizes, [n](int64_t i, int64_t, Generator& g) {
    const int64_t row = i % (n * n) / n, column = i % n;
    return row < column ? 0.0 : g.uniform() + (row == column ? 0.5 : 0.0);
  });
  s.rearrange = false;
  return s;
}

OpCase densities() {
  const std::string d = "torch.distributions.";
  const InputSpec triangle = factor({2, 3, 3});
  OpCase c = with_own_values(of_products(composition(
      "log_prob",
      {call(d + "Normal(x0, x1).log_prob(x2)", {input({2, 3}), input({3}, kRates), input({2, 3})},
            LEVIN_CALL(Normal(x0, x1).log_prob(x2))),
       call(d + "Normal(x0, x1).cdf(x2)", {input({3}), input({3}, kRates), input({2, 3})},
            LEVIN_CALL(Normal(x0, x1).cdf(x2))),
       call(d + "Normal(x0, x1).icdf(x2)", {input({3}), input({3}, kRates), input({3}, kShares)},
            LEVIN_CALL(Normal(x0, x1).icdf(x2))),
       call(d + "Uniform(x0, x1).log_prob(x2)",
            {input({3}, uniform(-2, -1)), input({3}, uniform(1, 2)), constant({2, 3}, uniform(-0.9, 0.9))},
            LEVIN_CALL(Uniform(x0, x1).log_prob(x2))),
       call(d + "Exponential(x0).log_prob(x1)", {input({3}, kRates), input({2, 3}, kRates)},
            LEVIN_CALL(Exponential(x0).log_prob(x1))),
       call(d + "Bernoulli(x0).log_prob(x1)", {input({4}, kShares), constant({4}, cycle({0, 1}))},
            LEVIN_CALL(Bernoulli(x0).log_prob(x1))),
       call(d + "Bernoulli(logits=x0).log_prob(x1)", {input({4}), constant({2, 4}, cycle({0, 1, 1}))},
            LEVIN_CALL(Bernoulli({}, x0).log_prob(x1))),
       call(d + "Categorical(x0).log_prob(x1)", {input({3, 4}, kRates), index_input({3}, 4)},
            LEVIN_CALL(Categorical(x0).log_prob(x1)), 4),
       call(d + "Categorical(logits=x0).log_prob(x1)", {input({4}), index_input({3}, 4)},
            LEVIN_CALL(Categorical({}, x0).log_prob(x1)), 4),
       call(d + "Gamma(x0, x1).log_prob(x2)", {input({3}, kRates), input({3}, kRates), input({2, 3}, kRates)},
            LEVIN_CALL(Gamma(x0, x1).log_prob(x2)), 3),
       call(d + "Beta(x0, x1).log_prob(x2)", {input({3}, kRates), input({3}, kRates), input({2, 3}, kShares)},
            LEVIN_CALL(Beta(x0, x1).log_prob(x2)), 3),
       call(d + "Dirichlet(x0).log_prob(torch.softmax(x1, -1))", {input({2, 3}, kRates), input({2, 3})},
            LEVIN_CALL(Dirichlet(x0).log_prob(softmax(x1, -1))), 3),
       call(d + "MultivariateNormal(x0, scale_tril=x1.tril()).log_prob(x2)", {input({3}), triangle, input({2, 3})},
            LEVIN_CALL(MultivariateNormal(x0, {}, tril(x1)).log_prob(x2)), 9),
       call(d + "MultivariateNormal(x0, x1 @ x1.mT).log_prob(x2)", {input({3}), triangle, input({2, 3})},
            LEVIN_CALL(MultivariateNormal(x0, matmul(x1, x1.transpose(-2, -1))).log_prob(x2)), 27)})));
  c.tolerance = {.ulps = 16, .scale = 64};
  c.grad_tolerance = {.ulps = 64, .scale = 128};
  return with_errors(c, {{"[Normal] scale must be positive", [] { Normal(ones({2}), zeros({2})); }},
                         {"[Uniform] low must be below high", [] { Uniform(ones({2}), ones({2})); }},
                         {"[Bernoulli] probs must be between 0 and 1", [] { Bernoulli(full({2}, 1.5)); }},
                         {"[Bernoulli] give either probs or logits", [] { Bernoulli(ones({2}), ones({2})); }},
                         {"[Categorical] give either probs or logits", [] { Categorical(ones({2}), ones({2})); }},
                         {"[Categorical] classes have no mean", [] { Categorical(ones({2})).mean(); }},
                         {"[Gamma] its samples have no gradient", [] { Gamma(ones({2}), ones({2})).rsample(); }},
                         {"[MultivariateNormal] give either covariance_matrix or scale_tril",
                          [] { MultivariateNormal(ones({2}), eye(2), eye(2)); }}});
}

OpCase entropies() {
  const std::string d = "torch.distributions.";
  OpCase c = with_own_values(of_products(composition(
      "entropy",
      {fixed(call("(lambda d: (d.entropy(), d.variance))(" + d + "Normal(x0, x1))", {input({2, 1}), input({3}, kRates)},
                  LEVIN_CALL(Tensors{Normal(x0, x1).entropy(), broadcast_to(Normal(x0, x1).variance(), {2, 3})}))),
       call("(lambda d: (d.entropy(), d.mean, d.variance))(" + d + "Uniform(x0, x1))",
            {input({3}, uniform(-2, -1)), input({3}, uniform(1, 2))},
            LEVIN_CALL(Tensors{Uniform(x0, x1).entropy(), Uniform(x0, x1).mean(), Uniform(x0, x1).variance()})),
       call("(lambda d: (d.entropy(), d.mean, d.variance))(" + d + "Exponential(x0))", {input({3}, kRates)},
            LEVIN_CALL(Tensors{Exponential(x0).entropy(), Exponential(x0).mean(), Exponential(x0).variance()})),
       call("(lambda d: (d.entropy(), d.mean, d.variance))(" + d + "Bernoulli(logits=x0))", {input({3})},
            LEVIN_CALL(Tensors{Bernoulli({}, x0).entropy(), Bernoulli({}, x0).mean(), Bernoulli({}, x0).variance()})),
       call(d + "Categorical(x0).entropy()", {input({2, 3}, kRates)}, LEVIN_CALL(Categorical(x0).entropy()), 3),
       call("(lambda d: (d.entropy(), d.mean, d.variance))(" + d + "Gamma(x0, x1))",
            {input({3}, kRates), input({3}, kRates)},
            LEVIN_CALL(Tensors{Gamma(x0, x1).entropy(), Gamma(x0, x1).mean(), Gamma(x0, x1).variance()})),
       call("(lambda d: (d.entropy(), d.mean, d.variance))(" + d + "Beta(x0, x1))",
            {input({3}, kRates), input({3}, kRates)},
            LEVIN_CALL(Tensors{Beta(x0, x1).entropy(), Beta(x0, x1).mean(), Beta(x0, x1).variance()}), 3),
       call("(lambda d: (d.entropy(), d.mean, d.variance))(" + d + "Dirichlet(x0))", {input({2, 3}, kRates)},
            LEVIN_CALL(Tensors{Dirichlet(x0).entropy(), Dirichlet(x0).mean(), Dirichlet(x0).variance()}), 3),
       call("(lambda d: (d.entropy(), d.variance))(" + d + "MultivariateNormal(x0, scale_tril=x1.tril()))",
            {input({2, 3}), factor({2, 3, 3})},
            LEVIN_CALL(Tensors{MultivariateNormal(x0, {}, tril(x1)).entropy(),
                               MultivariateNormal(x0, {}, tril(x1)).variance()}),
            3)})));
  c.tolerance = {.ulps = 16, .scale = 64};
  c.grad_tolerance = {.ulps = 64, .scale = 128};
  return c;
}

OpCase divergences() {
  const auto kl = [](const std::string& p, const std::string& q) {
    return "torch.distributions.kl_divergence(torch.distributions." + p + ", torch.distributions." + q + ")";
  };
  const InputSpec rates = input({3}, kRates), shares = input({3}, kShares), any = input({3});
  OpCase c = with_own_values(of_products(composition(
      "kl_divergence",
      {call(kl("Normal(x0, x1)", "Normal(x2, x3)"), {any, rates, any, rates},
            LEVIN_CALL(kl_divergence(Normal(x0, x1), Normal(x2, x3)))),
       call(kl("Uniform(x0, x1)", "Uniform(x0 - 1, x1 + 0.5)"),
            {input({3}, uniform(-2, -1)), input({3}, uniform(1, 2))},
            LEVIN_CALL(kl_divergence(Uniform(x0, x1), Uniform(x0 - 1, x1 + 0.5)))),
       call(kl("Exponential(x0)", "Exponential(x1)"), {rates, rates},
            LEVIN_CALL(kl_divergence(Exponential(x0), Exponential(x1)))),
       call(kl("Bernoulli(x0)", "Bernoulli(x1)"), {shares, shares},
            LEVIN_CALL(kl_divergence(Bernoulli(x0), Bernoulli(x1)))),
       call(kl("Categorical(x0)", "Categorical(logits=x1)"), {input({2, 3}, kRates), input({2, 3})},
            LEVIN_CALL(kl_divergence(Categorical(x0), Categorical({}, x1))), 3),
       call(kl("Gamma(x0, x1)", "Gamma(x2, x3)"), {rates, rates, rates, rates},
            LEVIN_CALL(kl_divergence(Gamma(x0, x1), Gamma(x2, x3))), 3),
       call(kl("Beta(x0, x1)", "Beta(x2, x3)"), {rates, rates, rates, rates},
            LEVIN_CALL(kl_divergence(Beta(x0, x1), Beta(x2, x3))), 3),
       call(kl("Dirichlet(x0)", "Dirichlet(x1)"), {input({2, 3}, kRates), input({2, 3}, kRates)},
            LEVIN_CALL(kl_divergence(Dirichlet(x0), Dirichlet(x1))), 3),
       call(kl("MultivariateNormal(x0, scale_tril=x1.tril())", "MultivariateNormal(x2, scale_tril=x3.tril())"),
            {input({2, 3}), factor({2, 3, 3}), input({2, 3}), factor({2, 3, 3})},
            LEVIN_CALL(kl_divergence(MultivariateNormal(x0, {}, tril(x1)), MultivariateNormal(x2, {}, tril(x3)))),
            9)})));
  c.tolerance = {.ulps = 16, .scale = 64};
  c.grad_tolerance = {.ulps = 64, .scale = 128};
  return c;
}

}  // namespace

std::vector<OpCase> distribution_cases() { return {densities(), entropies(), divergences()}; }

}  // namespace levin::test
