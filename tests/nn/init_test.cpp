#include <levin/autograd/autograd.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;
namespace init = levin::nn::init;

namespace {

double largest_difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace

TEST_CASE("a truncated normal distribution stays inside and has its moments") {
  Generator g(5);
  const Tensor x = init::trunc_normal_(empty({20000}), 1.0, 2.0, -1.0, 2.0, &g);
  CHECK(x.min().item<double>() >= -1);
  CHECK(x.max().item<double>() <= 2);
  // Of alpha = -1 and beta = 0.5 standard deviations.
  const auto phi = [](double v) { return std::exp(-v * v / 2) / std::sqrt(2 * 3.14159265358979); };
  const double share = 0.5 * (std::erf(0.5 / std::sqrt(2.0)) - std::erf(-1 / std::sqrt(2.0)));
  CHECK(std::abs(x.mean().item<double>() - (1 + 2 * (phi(-1) - phi(0.5)) / share)) < 0.02);
  CHECK(init::trunc_normal_(empty({4}, kFloat64)).dtype() == kFloat64);
  CHECK(init::trunc_normal_(empty({40}, kHalf)).abs().max().item<double>() <= 2);
}

TEST_CASE("orthogonal initialization gives orthonormal rows or columns") {
  const Tensor wide = init::orthogonal_(empty({3, 2, 4}), 2.0), tall = init::orthogonal_(empty({6, 3}, kFloat64));
  const Tensor rows = wide.reshape({3, 8});
  CHECK(largest_difference(rows.matmul(rows.t()), eye(3) * 4) < 1e-5);
  CHECK(largest_difference(tall.t().matmul(tall), eye(3, kFloat64)) < 1e-12);
  CHECK(init::orthogonal_(empty({0, 3})).numel() == 0);
  const Tensor parameter = empty({2, 2}).requires_grad_();
  CHECK(init::orthogonal_(parameter).is_leaf());
}

TEST_CASE("identities: eye_ and dirac_") {
  CHECK(equal(init::eye_(ones({2, 3})), eye(2, 3)));
  const Tensor x = randn({1, 4, 5}), weight = init::dirac_(ones({4, 4, 3}));
  CHECK(equal(conv1d(x, weight, {}, {.padding = 1}), x));
  const Tensor grouped = init::dirac_(ones({4, 2, 3, 3}), 2), image = randn({1, 4, 3, 3});
  CHECK(equal(conv2d(image, grouped, {}, {.padding = 1, .groups = 2}), image));
  CHECK(init::dirac_(ones({2, 5, 1})).sum().item<double>() == 2);
}

TEST_CASE("sparse_ leaves the share of each column that it is given") {
  const Tensor x = init::sparse_(ones({10, 7}), 0.25, 2.0);
  CHECK(equal((x == 0).sum(0), full({7}, 3)));  // rounded up
  CHECK((init::sparse_(ones({4, 2}), 0.0) == 0).sum().item<int>() == 0);
  CHECK((init::sparse_(ones({4, 2}), 1.0) == 0).sum().item<int>() == 8);
}

TEST_CASE("gains are those of calculate_gain") {
  using N = init::Nonlinearity;
  CHECK(init::calculate_gain(N::selu) == 0.75);
  CHECK(init::calculate_gain(N::sigmoid) == 1);
  CHECK(init::calculate_gain(N::linear) == 1);
  CHECK(init::calculate_gain(N::relu) == std::sqrt(2.0));
  CHECK(init::calculate_gain(N::leaky_relu, 0.2) == std::sqrt(2 / 1.04));
}
