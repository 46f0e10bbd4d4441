// Operations with a fast path equal their plain form: values, gradients and second gradients.
#include <doctest/doctest.h>
#include <levin/autograd/engine.h>
#include <levin/autograd/gradcheck.h>
#include <levin/autograd/ops.h>

#include <cmath>
#include <limits>
#include <map>

using namespace levin;

namespace {

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return (a - b).detach().abs().max().item<double>();
}

}  // namespace

TEST_CASE("distances of many points by one product equal the norms of differences") {
  manual_seed(5);
  const Tensor a = randn({2, 30, 3}, {.dtype = kDouble}).requires_grad_(), b = randn({27, 3}, {.dtype = kDouble});
  const Tensor plain = norm(unsqueeze(a, -2) - unsqueeze(b.requires_grad_(), -3), 2.0, -1), fast = cdist(a, b);
  CHECK(largest_difference(fast, plain) < 1e-12);
  CHECK(equal(cdist(a.detach(), b.detach()), fast.detach()));
  const Tensor g = randn(plain.sizes(), {.dtype = kDouble});
  const auto expected = grad({plain}, {a, b}, {}, {g}), actual = grad({fast}, {a, b}, {.retain_graph = true}, {g});
  for (std::size_t i = 0; i < 2; ++i) CHECK(largest_difference(actual[i], expected[i]) < 1e-11);
  const auto f = [](const std::vector<Tensor>& in) -> std::vector<Tensor> { return {cdist(in[0], in[1])}; };
  const Tensor p = randn({26, 1}, {.dtype = kDouble}), q = randn({2, 1}, {.dtype = kDouble}) + 9;
  CHECK(gradgradcheck(f, {p.requires_grad_(), q.requires_grad_()}) == "");
}

TEST_CASE("the distance of a point to itself is 0 and has the gradient 0") {
  const Tensor a = arange(60, {.dtype = kDouble}).reshape({30, 2}).requires_grad_();
  const Tensor d = cdist(a, a.detach());
  CHECK(diagonal(d).abs().max().item<double>() == 0);
  const Tensor g = grad({trace(d)}, {a})[0];
  CHECK(g.abs().max().item<double>() == 0);
  manual_seed(6);
  const Tensor points = randn({200, 3}), near = cdist(points, points.clone());  // rounding makes some squares negative
  CHECK(any(isnan(near)).item<bool>() == false);
  CHECK(diagonal(near).max().item<float>() < 2e-3f);
  CHECK(isnan(cdist(full({30, 2}, NAN), ones({2, 2}))).all().item<bool>());
}

TEST_CASE("roll adds up the shifts along one axis") {
  const Tensor x = arange(12).reshape({3, 4});
  CHECK(equal(roll(x, {1, 2, 1}, {1, 0, 1}), roll(roll(x, {2}, {1}), {2}, {0})));
  CHECK(equal(roll(x, {-5}, {1}), roll(x, {3}, {1})));
}

TEST_CASE("the extremes of scattered values keep NaN and share the gradient of equal values") {
  const Tensor x = zeros({3}), index = tensor<int64_t>({0, 0, 1, 1});
  const Tensor source = tensor({1.0f, 3.0f, NAN, -2.0f});
  for (const ScatterReduce how : {ScatterReduce::amax, ScatterReduce::amin}) {
    const Tensor y = scatter_reduce(x, 0, index, source, how);
    CHECK(y[0].item<float>() == (how == ScatterReduce::amax ? 3.0f : 0.0f));
    CHECK(std::isnan(y[1].item<float>()));
    CHECK(y[2].item<float>() == 0);
  }
  const Tensor own = tensor({2.0f, 5.0f}).requires_grad_(), ties = tensor({2.0f, 2.0f, 1.0f}).requires_grad_();
  const Tensor places = tensor<int64_t>({0, 0, 1});
  const auto g = grad({sum(scatter_reduce(own, 0, places, ties, ScatterReduce::amax))}, {own, ties});
  CHECK(largest_difference(g[0], tensor({1.0f / 3, 1.0f})) < 1e-6);
  CHECK(largest_difference(g[1], tensor({1.0f / 3, 1.0f / 3, 0.0f})) < 1e-6);
  const Tensor whole = scatter_reduce(zeros({2}, kInt64), 0, places, tensor<int64_t>({-4, -3, -9}),
                                      ScatterReduce::amin, false);
  CHECK(equal(whole, tensor<int64_t>({-4, -9})));
}

namespace {

template <class T>
void check_unique(const std::vector<T>& numbers) {
  std::map<T, int64_t> counts, rank;
  for (const T v : numbers) ++counts[v];
  std::vector<T> values;
  std::vector<int64_t> number_of_each, inverse;
  for (const auto& [value, count] : counts) {
    rank[value] = static_cast<int64_t>(values.size());
    values.push_back(value), number_of_each.push_back(count);
  }
  for (const T v : numbers) inverse.push_back(rank[v]);
  const Unique u = unique(from_data(numbers, {1, static_cast<int64_t>(numbers.size())}));
  CHECK(u.values.to_vector<T>() == values);
  CHECK(u.counts.template to_vector<int64_t>() == number_of_each);
  CHECK(u.inverse.template to_vector<int64_t>() == inverse);
  CHECK(u.inverse.sizes() == Shape{1, static_cast<int64_t>(numbers.size())});
}

}  // namespace

TEST_CASE_TEMPLATE("unique of integers that span a short range, a range that is one longer, and the whole type", T,
                   std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t) {
  using Limits = std::numeric_limits<T>;
  check_unique<T>({T(7), T(9), T(7), T(9)});
  check_unique<T>({T(7), T(10), T(7), T(10)});  // four numbers in a range of four
  check_unique<T>({T(7), T(11), T(7), T(11)});  // in a range of five
  check_unique<T>({Limits::max(), Limits::lowest(), Limits::max(), T(1)});
  check_unique<T>({Limits::lowest(), T(Limits::lowest() + 1), Limits::lowest()});
  check_unique<T>({Limits::max(), T(Limits::max() - 2), Limits::max(), T(Limits::max() - 2)});
  check_unique<T>({T(5)});
  check_unique<T>({});
  std::vector<T> many;
  for (int i = 0; i < 700; ++i) many.push_back(static_cast<T>(i * i));
  check_unique<T>(many);
}
