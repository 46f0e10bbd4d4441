// Gradients of reductions, losses and norms at the points where they are a convention.

#include <levin/autograd/autograd.h>
#include <levin/autograd/ops.h>

#include <doctest/doctest.h>

#include <cmath>

#include "support/comparison.h"

using namespace levin;
using levin::test::approx, levin::test::largest_difference;

namespace {

using Line = std::vector<double>;

Tensor leaf(const Line& v, DType dtype = kFloat64) {
  return from_data(v, {static_cast<int64_t>(v.size())}, {.dtype = dtype}).requires_grad_();
}

Line gradient(const Tensor& y, const Tensor& x) {
  x.set_grad({});
  y.backward();
  return x.grad().to_vector<double>();
}

}  // namespace

TEST_CASE("amax splits the gradient between ties; max along an axis gives it to the first") {
  const Tensor x = leaf({3, 1, 3, 3});
  CHECK(gradient(max(x), x) == Line{1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
  CHECK(gradient(min(x), x) == Line{0, 1, 0, 0});
  CHECK(gradient(amax(x, {0}), x) == Line{1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
  CHECK(gradient(max(x, 0).values, x) == Line{1, 0, 0, 0});
}

TEST_CASE("std and norms of 0 have a gradient of 0") {
  const Tensor x = leaf({2, 2, 2}), zero = leaf({0, 0, 0});
  CHECK(gradient(levin::std(x), x) == Line{0, 0, 0});
  for (const double p : {1.0, 2.0, 3.0}) CHECK(gradient(norm(zero, p), zero) == Line{0, 0, 0});
}

TEST_CASE("prod has exact gradients with one zero and with two") {
  const Tensor one = leaf({2, 0, 3}), two = leaf({0, 5, 0});
  CHECK(gradient(prod(one), one) == Line{0, 6, 0});
  CHECK(gradient(prod(two), two) == Line{0, 0, 0});
  // In float32, products of some of the elements are infinite or 0.
  const Tensor far = leaf({0, 0x1p100, 0x1p100, 0x1p-90, 0x1p-99}, kFloat32);
  CHECK(gradient(prod(far), far) == Line{0x1p11, 0, 0, 0, 0});
  const Tensor near = leaf({0x1p100, 0x1p100, 0x1p-99, 0x1p-99}, kFloat32);
  CHECK(gradient(prod(near), near) == Line{0x1p-98, 0x1p-98, 0x1p101, 0x1p101});
}

TEST_CASE("empty means are NaN, sums 0, products 1") {
  const Tensor none = zeros({0});
  CHECK(std::isnan(mean(none).item<double>()));
  CHECK(sum(none).item<double>() == 0.0);
  CHECK(prod(none).item<double>() == 1.0);
  CHECK(norm(none).item<double>() == 0.0);
}

TEST_CASE("logsumexp and softmax stay finite for large numbers") {
  const Tensor x = leaf({1e4, 1e4});
  CHECK(logsumexp(x, {0}).item<double>() == approx(1e4 + std::log(2.0), {.relative = 1e-15}));
  CHECK(gradient(logsumexp(x, {0}), x) == Line{0.5, 0.5});
}

TEST_CASE("logcumsumexp is stable for numbers far apart, infinities and NaN") {
  constexpr double inf = INFINITY;
  const auto values = [](const Line& v) { return logcumsumexp(leaf(v), 0).to_vector<double>(); };
  const auto slopes = [](const Line& v) {
    const Tensor x = leaf(v);
    return gradient(logcumsumexp(x, 0).sum(), x);
  };
  const double e = std::exp(-1.0), both = 2 + std::log1p(e);
  CHECK(values({-inf, -inf, 1, 2}) == Line{-inf, -inf, 1, both});
  CHECK(values({-800, -inf, 3, 3}) == Line{-800, -800, 3, 3 + std::log(2.0)});
  CHECK(values({-inf, -900, -inf}) == Line{-inf, -900, -900});
  CHECK(values({700, -700, 710}) == Line{700, 700, 710 + std::log1p(std::exp(-10.0))});
  CHECK(values({1, inf, 2}) == Line{1, inf, inf});
  const Line broken = values({1, NAN, 2});
  CHECK((broken[0] == 1 && std::isnan(broken[1]) && std::isnan(broken[2])));
  CHECK(largest_difference(slopes({-inf, -inf, 1, 2}), Line{0, 0, 1 + e / (1 + e), 1 / (1 + e)}) <= 1e-15);
  CHECK(slopes({-800, -inf, 3}) == Line{2, 0, 1});
  const Line infinite = slopes({1, inf, 2});
  CHECK((infinite[0] == 1 && infinite[2] == 0));
}

TEST_CASE("binary cross-entropy is stable for large logits") {
  const Tensor x = leaf({1000, -1000, 1000, -1000}), t = from_data(Line{1, 0, 0, 1}, {4});
  CHECK(bce_with_logits(x, t, {.reduction = Reduction::none}).to_vector<double>() == Line{0, 0, 1000, 1000});
  CHECK(gradient(bce_with_logits(x, t, {.reduction = Reduction::sum}), x) == Line{0, 0, 1, -1});
  CHECK(gradient(bce_with_logits(x, 1.0, {.reduction = Reduction::sum}), x) == Line{0, -1, 0, -1});
}

TEST_CASE("a loss of only ignored samples is NaN, and its gradient is 0") {
  const Tensor x = from_data(Line{1, 2, 3, 4}, {2, 2}).requires_grad_();
  const Tensor all = from_data<int64_t>({-100, -100}, {2}), one = from_data<int64_t>({-100, 1}, {2});
  CHECK(std::isnan(cross_entropy(x, all).item<double>()));
  const Line g = gradient(cross_entropy(x, one), x);
  CHECK((g[0] == 0.0 && g[1] == 0.0 && g[3] < 0.0));
  CHECK(g[2] == approx(-g[3], {.relative = 1e-12}));
}

TEST_CASE("one sample without a batch axis") {
  const Tensor x = leaf({1, 2, 3});
  const Tensor loss = cross_entropy(x, from_data<int64_t>({2}, {}));
  CHECK(loss.sizes() == Shape{});
  CHECK(loss.item<double>() == approx(std::log(1 + std::exp(-1.0) + std::exp(-2.0)), {.relative = 1e-15}));
}

TEST_CASE("running statistics, also strided or half, are updated in training and not in evaluation") {
  const Tensor x = from_data(Line{1, 2, 3, 6, 5, 10}, {3, 2}, {.dtype = kFloat32});  // channels 1 3 5 and 2 6 10
  const Tensor pairs = zeros({2, 2}), mean_now = pairs.select(1, 0), var_now = ones({2});
  batch_norm(x, mean_now, var_now, {}, {}, {.training = true, .momentum = 0.5});
  CHECK(mean_now.to_vector<double>() == Line{1.5, 3});
  CHECK(var_now.to_vector<double>() == Line{2.5, 8.5});
  batch_norm(x, mean_now, var_now, {}, {}, {.momentum = 0.5});
  CHECK(mean_now.to_vector<double>() == Line{1.5, 3});

  const Tensor half_mean = zeros({2}, {.dtype = kFloat16}), half_var = ones({2}, {.dtype = kFloat16});
  const Tensor half = batch_norm(x.to(kFloat16), half_mean, half_var, {}, {}, {.training = true, .momentum = 0.5});
  CHECK(half.dtype() == kFloat16);
  CHECK(half_mean.to_vector<double>() == Line{1.5, 3});
}

TEST_CASE("second derivatives over no elements are zero") {
  const Tensor none = zeros({0}, {.dtype = kFloat64}), pairs = zeros({3, 0}, {.dtype = kFloat64});
  const auto check = [](const char* name, const Tensor& of, auto&& f) {
    CAPTURE(name);
    const Tensor x = of.detach().requires_grad_(), y = f(x);
    const Tensor seed = ones(y.sizes(), like(y)).requires_grad_();
    const Tensor first = grad({y}, {x}, {.create_graph = true}, {seed})[0];
    CHECK(first.sizes() == x.sizes());
    const auto seconds = grad({first}, {seed, x}, {.allow_unused = true}, {ones_like(first)});
    for (const double v : seconds[0].to_vector<double>()) CHECK(v == 0.0);
    if (seconds[1].defined()) CHECK(seconds[1].sizes() == x.sizes());
  };
  check("mean", none, [](const Tensor& x) { return mean(x * x); });
  check("mean along an axis", pairs, [](const Tensor& x) { return mean(x * x, {1}); });
  check("var", none, [](const Tensor& x) { return var(x); });
  check("var along an axis", pairs, [](const Tensor& x) { return var(x, {1}, 0.0); });
  check("logsumexp", pairs, [](const Tensor& x) { return logsumexp(x, {1}); });
  check("mse_loss", none, [](const Tensor& x) { return mse_loss(x, zeros_like(x)); });
  check("l1_loss", none, [](const Tensor& x) { return l1_loss(x, zeros_like(x)); });
  check("bce_with_logits", none, [](const Tensor& x) { return bce_with_logits(x, ones_like(x)); });
  check("bce_with_logits, pos_weight", none,
        [](const Tensor& x) { return bce_with_logits(x, ones_like(x), {.pos_weight = full({1}, 2.0, like(x))}); });
  CHECK(std::isnan(var(none).item<double>()));
}

TEST_CASE("where std and norm are zero, so are their first and second derivatives") {
  const auto check = [](const char* name, double value, auto&& f) {
    CAPTURE(name);
    const Tensor x = full({2, 3}, value, {.dtype = kFloat64}).requires_grad_(), y = f(x);
    const Tensor seed = ones_like(y).requires_grad_();
    const Tensor first = grad({y}, {x}, {.create_graph = true}, {seed})[0];
    CHECK(first.to_vector<double>() == std::vector<double>(6, 0.0));
    const auto seconds = grad({first}, {seed, x}, {.allow_unused = true}, {ones_like(first)});
    CHECK(seconds[0].to_vector<double>() == std::vector<double>(2, 0.0));
    CHECK(seconds[1].to_vector<double>() == std::vector<double>(6, 0.0));
  };
  check("std", 7.0, [](const Tensor& x) { return levin::std(x, {1}); });
  check("norm of order 2", 0.0, [](const Tensor& x) { return norm(x, 2.0, {1}); });
  check("norm of order 3", 0.0, [](const Tensor& x) { return norm(x, 3.0, {1}); });
}

TEST_CASE("cross-entropy of only ignored samples has second derivatives of zero") {
  for (const double smoothing : {0.0, 0.1}) {
    const Tensor x = from_data(Line{1, 2, 3, 4}, {2, 2}).requires_grad_(), v = from_data(Line{1, -1, 2, 3}, {2, 2});
    const Tensor loss = cross_entropy(x, from_data<int64_t>({-100, -100}, {2}), {.label_smoothing = smoothing});
    const Tensor first = grad({loss}, {x}, {.create_graph = true})[0];
    CHECK(first.to_vector<double>() == Line{0, 0, 0, 0});
    CHECK(grad({first}, {x}, {}, {v})[0].to_vector<double>() == Line{0, 0, 0, 0});
  }
}

TEST_CASE("one axis needs no braces") {
  const Tensor x = tensor({{1.0, 2.0, 4.0}, {3.0, 5.0, 9.0}});
  CHECK(sum(x, 1).to_vector<double>() == std::vector<double>{7, 17});
  CHECK(x.sum(-1, true).sizes() == Shape{2, 1});
  CHECK(mean(x, 0).to_vector<double>() == std::vector<double>{2, 3.5, 6.5});
  CHECK(prod(x, 1).to_vector<double>() == std::vector<double>{8, 135});
  CHECK(amax(x, 1).to_vector<double>() == std::vector<double>{4, 9});
  CHECK(amin(x, 0, true).to_vector<double>() == std::vector<double>{1, 2, 4});
  CHECK(any(x > 3, 1).to_vector<bool>() == std::vector<bool>{true, true});
  CHECK(all(x > 1, 0).to_vector<bool>() == std::vector<bool>{false, true, true});
  CHECK(norm(x, 1.0, 1).to_vector<double>() == std::vector<double>{7, 17});
  CHECK(logsumexp(zeros({2, 1}), 1).to_vector<double>() == std::vector<double>{0, 0});
  CHECK(flip(x, 1).to_vector<double>() == std::vector<double>{4, 2, 1, 9, 5, 3});
  CHECK(sum(x, {}).item<double>() == 24);
  CHECK_THROWS_WITH_AS(sum(x, 2), doctest::Contains("[sum]"), IndexError);
}

TEST_CASE("var and std take PyTorch's unbiased and keepdim, or a correction by name") {
  const Tensor x = tensor({{1.0, 3.0}, {2.0, 6.0}});
  CHECK(var(x, {1}, true).to_vector<double>() == std::vector<double>{2, 8});
  CHECK(var(x, 1, false).to_vector<double>() == std::vector<double>{1, 4});
  CHECK(var(x, 1, false, true).sizes() == Shape{2, 1});
  CHECK(var(x, 1, {.correction = 0}).to_vector<double>() == std::vector<double>{1, 4});
  CHECK(x.var(1, {.keepdim = true}).to_vector<double>() == std::vector<double>{2, 8});
  CHECK(x.var(1, {.keepdim = true}).sizes() == Shape{2, 1});
  CHECK(levin::std(x, 1, {.correction = 0}).to_vector<double>() == std::vector<double>{1, 2});
  CHECK(x.std(1, false).to_vector<double>() == std::vector<double>{1, 2});
}

TEST_CASE("reductions, scans and softmax compute in the dtype that is named") {
  const Tensor x = full({4096}, 1.0, kFloat16), whole = tensor({{1, 2}, {3, 4}}, kInt32);
  CHECK(sum(x * 100, {.dtype = kFloat64}).item<double>() == 409600);  // float16 ends at 65504
  CHECK(x.sum({.dtype = kFloat32}).dtype() == kFloat32);
  CHECK(sum(whole).dtype() == kInt64);
  CHECK(sum(whole, {.dtype = kInt32}).dtype() == kInt32);
  const Tensor lines = sum(whole, 1, {.keepdim = true, .dtype = kFloat64});
  CHECK(lines.dtype() == kFloat64);
  CHECK(lines.sizes() == Shape{2, 1});
  CHECK(lines.to_vector<double>() == std::vector<double>{3, 7});
  CHECK(whole.sum(0, {.dtype = kFloat32}).to_vector<double>() == std::vector<double>{4, 6});
  CHECK(sum(whole, 0, {.keepdim = true}).dtype() == kInt64);
  CHECK(mean(whole, {.dtype = kFloat64}).item<double>() == 2.5);
  CHECK(whole.mean(1, {.dtype = kFloat32}).to_vector<double>() == std::vector<double>{1.5, 3.5});
  CHECK_THROWS_AS(mean(whole, {.dtype = kInt64}), DTypeError);
  CHECK(prod(whole, {.dtype = kFloat32}).dtype() == kFloat32);
  CHECK(cumsum(whole, 1).dtype() == kInt64);
  CHECK(cumsum(whole, 1, {.dtype = kFloat32}).to_vector<double>() == std::vector<double>{1, 3, 3, 7});
  CHECK(cumsum(whole, 1, {.dtype = kInt8}).dtype() == kInt8);
  CHECK(softmax(whole, 1, {.dtype = kFloat64}).dtype() == kFloat64);
  CHECK(x.log_softmax(0, {.dtype = kFloat32}).dtype() == kFloat32);
  // Values are converted before they are reduced, not after.
  CHECK(sum(tensor({0.5, 0.5}), {.dtype = kInt64}).item<int>() == 0);
  const Tensor leaf = ones({3}).requires_grad_();
  sum(leaf * 2, {.dtype = kFloat64}).backward();
  CHECK(leaf.grad().dtype() == kFloat32);
  CHECK(leaf.grad().to_vector<double>() == std::vector<double>{2, 2, 2});
}
