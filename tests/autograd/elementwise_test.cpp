// Properties of operations apart from their values: result types, results that alias, gradients at kinks, refused
// edits.

#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/core/warning.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace levin;

namespace {

Tensor of(DType t, const Shape& sizes = {2}) { return ones(sizes, {.dtype = t}); }

std::vector<double> gradient(const Tensor& x, const Tensor& y) { return grad({y.sum()}, {x})[0].to_vector<double>(); }

}  // namespace

TEST_CASE("where takes two numbers, and % is remainder") {
  const Tensor condition = from_data(std::vector<double>{1, 0, 1}, {3}) > 0.5;
  const Tensor integers = where(condition, 1, 0), floats = where(condition, 0.5, 2);
  CHECK(integers.dtype() == kInt64);
  CHECK(integers.to_vector<int>() == std::vector<int>{1, 0, 1});
  CHECK(floats.dtype() == default_dtype());
  CHECK(floats.to_vector<double>() == std::vector<double>{0.5, 2, 0.5});
  CHECK((arange(5) % 3).to_vector<int>() == std::vector<int>{0, 1, 2, 0, 1});
  CHECK((arange(-2, 2) % full({4}, 3)).to_vector<int>() == std::vector<int>{1, 2, 0, 1});
}

TEST_CASE("mse_loss and l1_loss warn once of tensors that are broadcast") {
  std::vector<std::string> said;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { said.push_back(text); });
  mse_loss(zeros({4, 1}), zeros({4, 1}));
  CHECK(said.empty());
  for (int i = 0; i < 2; ++i) mse_loss(zeros({4, 1}), zeros({4}));
  l1_loss(zeros({4, 1}), zeros({4}));
  set_warning_handler(former);
  REQUIRE(said.size() == 2);
  CHECK(said[0] == "[mse_loss] input is (4, 1), target is (4,): they are broadcast. Give them one size if that is "
                   "not meant.");
  CHECK(said[1].starts_with("[l1_loss]"));
}

TEST_CASE("result types follow PyTorch's promotion") {
  CHECK((of(kInt64) + of(kFloat32)).dtype() == kFloat32);
  CHECK((of(kUInt8) + of(kInt8)).dtype() == kInt16);
  CHECK((of(kHalf) + of(kBFloat16)).dtype() == kFloat32);
  CHECK((of(kBool) + of(kBool)).dtype() == kBool);
  CHECK((of(kFloat32) * of(kFloat64, {})).dtype() == kFloat32);  // 0 dimensions of the same category do not widen
  CHECK((of(kInt64) * of(kHalf, {})).dtype() == kHalf);
  CHECK((of(kInt32, {}) * of(kInt8)).dtype() == kInt8);
  CHECK((of(kHalf) * 2.5).dtype() == kHalf);
  CHECK((of(kInt32) * 2.5).dtype() == kFloat32);
  CHECK((of(kBool) * 2).dtype() == kInt64);
  CHECK((of(kInt32) / of(kInt32)).dtype() == kFloat32);
  CHECK(exp(of(kInt16)).dtype() == kFloat32);
  CHECK(floor(of(kInt16)).dtype() == kInt16);
  CHECK(pow(of(kInt64), 2).dtype() == kInt64);
  CHECK(where(of(kBool), of(kInt64), 0.5).dtype() == kFloat32);
  CHECK((of(kInt64) < of(kFloat64)).dtype() == kBool);
}

TEST_CASE("16-bit operations compute in f32 and round once") {
  const Tensor x = tensor<Half>({Half(1.0f)}), tiny = tensor<Half>({Half(0x1p-11f)});
  // 1 + 3 * 2^-11 lies between two halves; rounding 3 * 2^-11 first would change nothing, rounding 1 + 2^-11 would.
  CHECK(add(x, tiny, 3).item<float>() == static_cast<float>(Half(1.0f + 3 * 0x1p-11f)));
  CHECK((x * 1.0001).item<float>() == static_cast<float>(Half(1.0001f)));
}

TEST_CASE("integers wrap, divide and raise as PyTorch's") {
  const Tensor a = tensor<int64_t>({7, -7, 7, -7}), b = tensor<int64_t>({2, 2, -2, -2});
  CHECK(floor_divide(a, b).to_vector<int>() == std::vector<int>{3, -4, -4, 3});
  CHECK(remainder(a, b).to_vector<int>() == std::vector<int>{1, 1, -1, -1});
  CHECK((tensor<std::uint8_t>({250}) + tensor<std::uint8_t>({10})).item<int>() == 4);
  CHECK(pow(tensor<int64_t>({3}), tensor<int64_t>({4})).item<int>() == 81);
  CHECK_THROWS_AS(pow(tensor<int64_t>({3}), -1), ValueError);
  CHECK((tensor({true, false}) + tensor({true, true})).to_vector<bool>() == std::vector<bool>{true, true});
}

TEST_CASE("conversions that change nothing return the tensor itself") {
  const Tensor x = rand({2, 3});
  CHECK(x.to(kFloat32).is_same(x));
  CHECK(x.to(kCpu).is_same(x));
  CHECK(x.contiguous().is_same(x));
  CHECK_FALSE(x.clone().shares_storage(x));
  CHECK_FALSE(x.t().contiguous().shares_storage(x));
  CHECK_THROWS_AS(x.to(cuda(0)), DeviceError);
}

TEST_CASE("gradients come back in the type and shape of the input") {
  const Tensor x = of(kFloat32, {3, 1}).requires_grad_(), w = of(kFloat64, {4}).requires_grad_();
  (x * w).sum().backward();
  CHECK(x.grad().dtype() == kFloat32);
  CHECK(x.grad().sizes() == Shape{3, 1});
  CHECK(w.grad().dtype() == kFloat64);
  CHECK(w.grad().to_vector<double>() == std::vector<double>{3, 3, 3, 3});
}

TEST_CASE("gradients at kinks and edges are PyTorch's") {
  const Tensor tie = tensor<double>({1.0, 2.0, 3.0}).requires_grad_(), two = full({3}, 2.0, {.dtype = kFloat64});
  CHECK(gradient(tie, maximum(tie, two)) == std::vector<double>{0, 0.5, 1});
  CHECK(gradient(tie, minimum(tie, two)) == std::vector<double>{1, 0.5, 0});
  CHECK(gradient(tie, clamp(tie, 1, 2)) == std::vector<double>{1, 1, 0});  // the bounds are inside
  const Tensor zero = tensor<double>({0.0, -0.0}).requires_grad_();
  CHECK(gradient(zero, relu(zero)) == std::vector<double>{0, 0});
  CHECK(gradient(zero, abs(zero)) == std::vector<double>{0, 0});
  CHECK(gradient(zero, pow(zero, 0)) == std::vector<double>{0, 0});
  CHECK(gradient(zero, pow(zero, 1)) == std::vector<double>{1, 1});
  const Tensor base = tensor<double>({0.0, 0.0, -2.0}).requires_grad_();
  const Tensor power = tensor<double>({0.0, 2.0, 3.0}).requires_grad_();
  const Tensor y = pow(base, power);
  CHECK(y.to_vector<double>() == std::vector<double>{1, 0, -8});
  const auto both = grad({y.sum()}, {base, power});
  CHECK(both[0].to_vector<double>() == std::vector<double>{0, 0, 12});
  CHECK(both[1].to_vector<double>()[0] == 0);
  CHECK(both[1].to_vector<double>()[1] == 0);
  CHECK(std::isnan(both[1].to_vector<double>()[2]));
}

TEST_CASE("relu zeroes an infinite gradient where the input is negative") {
  const Tensor x = tensor<double>({-1.0, 1.0}).requires_grad_();
  const auto g = grad({relu(x)}, {x}, {}, {full({2}, INFINITY, {.dtype = kFloat64})})[0].to_vector<double>();
  CHECK(g[0] == 0);
  CHECK(std::isinf(g[1]));
}

TEST_CASE("in-place edits keep type and memory, and read overlapping operands before writing") {
  const Tensor x = arange(9, {.dtype = kFloat32}).view({3, 3});
  const void* memory = x.raw_data();
  x += x.t();
  CHECK(x.to_vector<int>() == std::vector<int>{0, 4, 8, 4, 8, 12, 8, 12, 16});
  CHECK(x.raw_data() == memory);
  x.copy_(x.t() * 2);
  x.narrow(0, 1, 2).copy_(x.narrow(0, 0, 2));
  CHECK(x.to_vector<int>() == std::vector<int>{0, 8, 16, 0, 8, 16, 8, 16, 24});
  const Tensor h = of(kHalf);
  h += of(kFloat64) * 0.5;
  CHECK(h.dtype() == kHalf);
  CHECK(h.to_vector<double>() == std::vector<double>{1.5, 1.5});
  CHECK_THROWS_AS(of(kInt32) /= 2, DTypeError);
  CHECK_THROWS_AS(of(kInt32).exp_(), DTypeError);
  CHECK_THROWS_AS(of(kBool) += 1, DTypeError);
  CHECK_THROWS_AS(ones({1, 2}).expand({3, 2}) += 1, ShapeError);
  CHECK_THROWS_AS(ones({2}).copy_(ones({3})), ShapeError);
}

TEST_CASE("recorded in-place edits propagate gradients to both operands") {
  const Tensor x = tensor<double>({1.0, 2.0}).requires_grad_(), w = tensor<double>({3.0, 4.0}).requires_grad_();
  const Tensor y = x * 2;
  y.mul_(w);
  y.sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{6, 8});
  CHECK(w.grad().to_vector<double>() == std::vector<double>{2, 4});
  const Tensor source = tensor<double>({5.0}).requires_grad_(), target = zeros({3}, {.dtype = kFloat64});
  target.copy_(source);
  CHECK(gradient(source, target * 2) == std::vector<double>{6});
  const Tensor gone = x * 2;
  gone.zero_();
  CHECK(gradient(x, gone) == std::vector<double>{0, 0});
}

TEST_CASE("dropout drops the same elements in backward") {
  Generator g(3);
  const Tensor x = ones({1000}).requires_grad_();
  const Tensor y = dropout(x, 0.4, true, &g);
  y.sum().backward();
  CHECK(x.grad().to_vector<float>() == y.to_vector<float>());
  CHECK(dropout(x, 0.4, false).is_same(x));
  CHECK(dropout(x, 1.0).sum().item<float>() == 0);
  CHECK(dropout(x, 0.0).is_same(x));
}

TEST_CASE("random functions continue their generator and repeat by seed") {
  Generator a(5), b(5);
  const Tensor first = randn({7}, {.generator = &a}), second = randn({7}, {.generator = &a});
  CHECK(first.to_vector<float>() == randn({7}, {.generator = &b}).to_vector<float>());
  CHECK(second.to_vector<float>() == randn({7}, {.generator = &b}).to_vector<float>());
  CHECK(first.to_vector<float>() != second.to_vector<float>());
  std::vector<int64_t> order = randperm(1000, {.generator = &a}).to_vector<int64_t>(), sorted(1000);
  std::iota(sorted.begin(), sorted.end(), 0);
  CHECK(order != sorted);
  std::sort(order.begin(), order.end());
  CHECK(order == sorted);
  const Tensor strided = zeros({4, 6}).t();
  normal_(strided, 10, 0.1, &a);
  CHECK((strided > 5).all().item<bool>());
  CHECK_THROWS_AS(rand({2}, {.dtype = kInt64}), DTypeError);
}

TEST_CASE("ranges have PyTorch's lengths and types") {
  CHECK(arange(5).dtype() == kInt64);
  CHECK(arange(0, 1, 0.25).dtype() == kFloat32);
  CHECK(arange(0, 1, 0.3).numel() == 4);
  CHECK(arange(10, 0, -3).to_vector<int>() == std::vector<int>{10, 7, 4, 1});
  CHECK(arange(3, 3).numel() == 0);
  CHECK(linspace(0, 1, 1).to_vector<float>() == std::vector<float>{0});
  CHECK(linspace(0, 1, 3).to_vector<float>() == std::vector<float>{0, 0.5f, 1});
  CHECK(full({2}, 3).dtype() == kInt64);
  CHECK(full({2}, true).dtype() == kBool);
  CHECK(zeros_like(of(kInt8, {2, 3})).dtype() == kInt8);
}

TEST_CASE("bits of integers and bool") {
  const Tensor a = tensor({12, -1, 5}), b = tensor({10, 3, -8});
  CHECK((a & b).to_vector<int64_t>() == std::vector<int64_t>{12 & 10, 3, 5 & -8});
  CHECK((a | b).to_vector<int64_t>() == std::vector<int64_t>{12 | 10, -1, 5 | -8});
  CHECK((a ^ b).to_vector<int64_t>() == std::vector<int64_t>{12 ^ 10, -1 ^ 3, 5 ^ -8});
  CHECK((~a).to_vector<int64_t>() == std::vector<int64_t>{~12, 0, ~5});
  CHECK((a & 4).to_vector<int64_t>() == std::vector<int64_t>{4, 4, 4});
  CHECK((1 | a).to_vector<int64_t>() == std::vector<int64_t>{13, -1, 5});
  CHECK((1 ^ a).to_vector<int64_t>() == std::vector<int64_t>{13, -2, 4});
  CHECK((~tensor({0, 200, 255}, kUInt8)).to_vector<int>() == std::vector<int>{255, 55, 0});
  CHECK((tensor({1, 2}, kInt32) & 3).dtype() == kInt32);
  CHECK((tensor({1, 2}, kInt8) & tensor({3, 3}, kInt32)).dtype() == kInt32);

  const Tensor x = tensor({-1.0, 0.5, 2.0}), inside = (x > 0) & (x < 1);
  CHECK(inside.dtype() == kBool);
  CHECK(inside.to_vector<bool>() == std::vector<bool>{false, true, false});
  CHECK(((x > 0) | (x < 0)).to_vector<bool>() == std::vector<bool>{true, true, true});
  CHECK(((x > 0) ^ (x < 1)).to_vector<bool>() == std::vector<bool>{true, false, true});
  CHECK((~inside).to_vector<bool>() == std::vector<bool>{true, false, true});
  CHECK(((x > 0) & true).dtype() == kBool);
  CHECK(((x > 0) & 1).dtype() == kInt64);
  CHECK_THROWS_WITH_AS(x & inside,
                       "[bitwise_and] float32 is not accepted, only bool and integers; compare first, e.g. (x > 0) & "
                       "m, or use x.to(kInt64).", DTypeError);
  CHECK_THROWS_WITH_AS(~x, doctest::Contains("[bitwise_not] float32 is not accepted"), DTypeError);
}

TEST_CASE("bits in place") {
  const Tensor a = tensor({12, 3});
  a &= tensor({10, 1});
  CHECK(a.to_vector<int64_t>() == std::vector<int64_t>{8, 1});
  a |= 4;
  CHECK(a.to_vector<int64_t>() == std::vector<int64_t>{12, 5});
  a ^= 1;
  CHECK(a.to_vector<int64_t>() == std::vector<int64_t>{13, 4});
  a.bitwise_not_();
  CHECK(a.to_vector<int64_t>() == std::vector<int64_t>{-14, -5});
  a(a < -5) |= 6;
  CHECK(a.to_vector<int64_t>() == std::vector<int64_t>{-14 | 6, -5});
  const Tensor m = tensor({true, false});
  m ^= true;
  CHECK(m.to_vector<bool>() == std::vector<bool>{false, true});
  CHECK_THROWS_WITH_AS(m &= 3, doctest::Contains("[bitwise_and_] a result of type int64 does not fit"), DTypeError);
  CHECK_THROWS_AS(ones({2}) &= m, DTypeError);
}

TEST_CASE("softshrink with lambda 0 is the identity, and its gradient at 0 is 0") {
  const Tensor x = tensor<float>({-2, 0, 0.5}).requires_grad_(), y = softshrink(x, 0);
  CHECK(y.to_vector<float>() == std::vector<float>{-2, 0, 0.5});
  CHECK(gradient(x, y) == std::vector<double>{1, 0, 1});
}

TEST_CASE("xlogy and xlog1py are 0 where x is 0, and their gradient there is the logarithm where it exists") {
  const Tensor x = tensor<double>({0, -0.0, 0, 0, 2}).requires_grad_();
  const Tensor y = tensor<double>({4, 0.25, 0, -3, 1});
  const auto with = [&](Tensor (*f)(const Tensor&, const Tensor&), const std::vector<double>& values,
                        const std::vector<double>& gradients) {
    const Tensor result = f(x, y);
    CHECK(test::compare(result.detach(), values, {}) == "");
    CHECK(test::compare(grad({result.sum()}, {x})[0], gradients, {}) == "");
    CHECK(signbit(result).to_vector<bool>() == std::vector<bool>{false, false, false, false, false});
  };
  with(&xlogy, {0, 0, 0, 0, 0}, {std::log(4.0), std::log(0.25), 0, 0, 0});
  with(&xlog1py, {0, 0, 0, 0, 2 * std::log1p(1.0)}, {std::log1p(4.0), std::log1p(0.25), 0, 0, std::log1p(1.0)});
  CHECK(xlogy(zeros({2}, {.dtype = kHalf}), of(DType::f16)).dtype() == kHalf);
}
