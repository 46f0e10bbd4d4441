#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/core/io.h>

#include "support/paths.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

using namespace levin;

namespace {

Tensor numbers(const Shape& sizes) { return arange(sizes.numel()).to(kFloat64).reshape(sizes); }
Tensor at(std::initializer_list<int64_t> positions) { return tensor(positions); }
Tensor f64(std::initializer_list<double> values) { return tensor(values); }
using Ints = std::vector<int>;
Ints values(const Tensor& t) { return t.to_vector<int>(); }

}  // namespace

TEST_CASE("an assignment to an index expression writes") {
  const Tensor x = numbers({3, 2});
  x(0) = f64({7, 8});
  CHECK(values(x) == Ints{7, 8, 2, 3, 4, 5});
  x(gt(x, 6.0)) = 0;
  CHECK(values(x) == Ints{0, 0, 2, 3, 4, 5});
  x(at({2, 0})) = f64({-1, -2});
  CHECK(values(x) == Ints{-1, -2, 2, 3, -1, -2});
  x(Slice(), 0) += f64({10, 20, 30});
  CHECK(values(x) == Ints{9, -2, 22, 3, 29, -2});
  x[1] = ones({});
  CHECK(values(x) == Ints{9, -2, 1, 1, 29, -2});
}

TEST_CASE("numbers, broadcast and converted values, and compound assignments are written") {
  const Tensor x = numbers({2, 3});
  x(1, Slice(nil, nil, 2)) = 9.5;
  CHECK(x.to_vector<double>() == std::vector<double>{0, 1, 2, 9.5, 4, 9.5});
  x(Ellipsis) = tensor<int64_t>({1, 2, 3});
  CHECK(values(x) == Ints{1, 2, 3, 1, 2, 3});
  x(0) = ones({1, 1, 3});  // leading sizes of 1 are dropped
  CHECK(values(x) == Ints{1, 1, 1, 1, 2, 3});
  x[at({1, 1})] += 5;  // a repeated position counts once
  CHECK(values(x) == Ints{1, 1, 1, 6, 7, 8});
  x(gt(x, 6.0)) *= f64({2, 3});
  CHECK(values(x) == Ints{1, 1, 1, 6, 14, 24});
  x(gt(x, 6.0)) -= 4;
  x(at({0}), at({-1})) /= 2;
  CHECK(x.to_vector<double>() == std::vector<double>{1, 1, 0.5, 6, 10, 20});
  x(0) = x(1) = f64({3, 2, 1});
  CHECK(values(x) == Ints{3, 2, 1, 3, 2, 1});
  x(at({0, 1}), 0) = x(at({0, 0}), 1);
  CHECK(values(x) == Ints{2, 2, 1, 2, 2, 1});
  x(Slice(), true) = 4;
  CHECK(values(x) == Ints(6, 4));
  x(false) = 5;
  CHECK(values(x) == Ints(6, 4));

  const Tensor whole = zeros({3}, {.dtype = kInt64});
  whole(at({0, 2})) = f64({1.9, -2.9});
  whole[1] = 7.9;
  CHECK(values(whole) == Ints{1, 7, -2});
  CHECK_THROWS_AS(whole(at({0})) += 0.5, DTypeError);
}

TEST_CASE("assignments read everything before they write") {
  const Tensor x = numbers({6}), places = at({1, 2, 3, 4, 5});
  x(places) = x(Slice(0, 5));
  CHECK(values(x) == Ints{0, 0, 1, 2, 3, 4});
  const Tensor order = at({2, 0, 1});
  order(order) = at({5, 6, 7});
  CHECK(values(order) == Ints{6, 7, 5});
  const Tensor square = numbers({3, 3});
  square(Slice(), at({2, 1, 0})) = square.t();
  CHECK(values(square) == Ints{6, 3, 0, 7, 4, 1, 8, 5, 2});
}

TEST_CASE("a name that is assigned becomes another tensor") {
  const Tensor x = numbers({4, 2}), other = ones({3}), mask = gt(x, 3.0);
  auto part = x(Slice(0, 2));
  static_assert(std::is_same_v<decltype(part), Tensor>);
  CHECK(part.shares_storage(x));
  part = other;
  CHECK(part.is_same(other));
  auto chosen = x(mask);
  CHECK(!chosen.shares_storage(x));
  chosen += 1;
  CHECK(values(chosen) == Ints{5, 6, 7, 8});
  chosen = other;
  CHECK(chosen.is_same(other));
  CHECK(values(x) == Ints{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_THROWS_AS(std::move(chosen) = other, ValueError);  // it no longer stands for places of x

  Tensor a = x(0), b = x(at({3}));
  std::swap(a, b);
  CHECK(values(b) == Ints{0, 1});
  std::vector<Tensor> list{x(0), x(mask), x(1)};
  list.erase(list.begin());
  list.insert(list.begin(), x(at({0})));
  CHECK(values(list[1]) == Ints{4, 5, 6, 7});
  struct Holder {
    Tensor member;
  };
  Holder from{x(1)}, to{x(2)};
  to = std::move(from);
  CHECK(values(to.member) == Ints{2, 3});
  std::optional<Tensor> maybe = x(0);
  maybe = x(mask);
  CHECK(maybe->numel() == 4);
  const auto row = [&](int64_t i) { return x(i); };
  CHECK(row(1).sum().item<int>() == 5);
  CHECK(x(mask).sum().item<int>() == 22);
  CHECK(values(x) == Ints{0, 1, 2, 3, 4, 5, 6, 7});
  static_assert(std::is_nothrow_move_assignable_v<Tensor> && std::is_nothrow_move_constructible_v<Tensor>);
}

TEST_CASE("a write that would be lost is refused") {
  const Tensor x = numbers({3, 2});
  CHECK_THROWS_WITH_AS(index_select(x, 0, at({0})) = 1, doctest::Contains("the values would be lost"), ValueError);
  CHECK_THROWS_AS(x.t().reshape({6}) = x, ValueError);
  CHECK_THROWS_WITH_AS(Tensor() = x, doctest::Contains("undefined"), ValueError);
  CHECK_THROWS_WITH_AS(x(0) = zeros({3}), doctest::Contains("(3,)"), ShapeError);
  CHECK_THROWS_AS(x.expand({2, 3, 2})(at({0})) = 1, ShapeError);
  x.t() = ones({2, 3});
  CHECK(values(x) == Ints(6, 1));
}

// Shapes and values that PyTorch gives.
TEST_CASE("what tensors select stands where PyTorch puts it") {
  const Tensor x = numbers({2, 3, 4, 5}), i = at({1, 0}), j = at({2, 0});
  CHECK(x(i).sizes() == Shape{2, 3, 4, 5});
  CHECK(x(Slice(), i, j).sizes() == Shape{2, 2, 5});
  CHECK(values(x(0, i, j, 0)) == Ints{30, 0});
  CHECK(x(Slice(), i, Slice(), j).sizes() == Shape{2, 2, 4});
  CHECK(values(x(Slice(), i, 0, j)) == Ints{22, 0, 82, 60});     // the number leaves: i and j are neighbours
  CHECK(x(0, Slice(), Slice(), j).sizes() == Shape{3, 4, 2});    // not (2, 3, 4), as NumPy has it
  CHECK(x(i, nil, j).sizes() == Shape{2, 1, 4, 5});
  CHECK(x(Ellipsis, i, j).sizes() == Shape{2, 3, 2});
  CHECK(x(nil, i, Slice(1, nil), j.reshape({2, 1})).sizes() == Shape{2, 2, 1, 2, 5});
  CHECK(x(i.reshape({2, 1}), at({0, 1, 2})).sizes() == Shape{2, 3, 4, 5});
  CHECK(x(Slice(), gt(x[0], 17.0).select(1, 0).select(1, 0), 0).sizes() == Shape{2, 2, 5});
  CHECK(x(gt(x, 117.0)).sizes() == Shape{2});
  CHECK(x(Slice(), gt(x[0].select(2, 0), 20.0), at({0})).sizes() == Shape{2, 7});
  CHECK(x(0, gt(x(0, Slice(), 0, 0), 15.0), Slice(), 0).sizes() == Shape{2, 4});
  CHECK(x(true).sizes() == Shape{1, 2, 3, 4, 5});
  CHECK(x(0, false).sizes() == Shape{0, 3, 4, 5});
  CHECK(x(tensor(true)).sizes() == Shape{1, 2, 3, 4, 5});
  CHECK(x(tensor(int64_t{1})).shares_storage(x));  // a 0-dim position is a number
  CHECK(values(x[1][2][at({-1, 0})](Slice(), 4)) == Ints{119, 104});
  CHECK(values(x(1, 2, 3, at({-1, 0}).to(kInt32))) == Ints{119, 115});
}

TEST_CASE("writes are recorded as in-place edits") {
  const Tensor a = f64({1, 2, 3}).requires_grad_(), b = f64({4, 5}).requires_grad_();
  CHECK_THROWS_WITH_AS(a(0) = 1, doctest::Contains("a view of a leaf that requires grad cannot be edited"), GradError);
  CHECK_THROWS_WITH_AS(a(at({0})) = 1, doctest::Contains("a leaf that requires grad cannot be edited"), GradError);
  CHECK_THROWS_WITH_AS(a(gt(a, 2.0)) = 1, doctest::Contains("a leaf that requires grad cannot be edited"), GradError);
  CHECK_THROWS_WITH_AS(a(gt(a, 2.0)) += 1, doctest::Contains("a leaf that requires grad cannot be edited"), GradError);
  const Tensor y = a * 2.0;
  y(at({2, 0})) = b;
  y(1) *= b(0);
  sum(y * y).backward();  // y = (b1, 2 a1 b0, b0)
  CHECK(a.grad().to_vector<double>() == std::vector<double>{0, 256, 0});
  CHECK(b.grad().to_vector<double>() == std::vector<double>{2 * 16 * 4 + 8, 10});

  const Tensor saved = a * 1.0, product = saved * saved;
  saved(gt(saved, 2.0)) = 0;
  CHECK_THROWS_WITH_AS(sum(product).backward(), doctest::Contains("[mul]"), GradError);
  const Tensor plain = zeros({4});
  const auto version = plain.version();
  plain(at({1})) = 1;
  plain(gt(plain, 0.0)) = 2;
  plain(0) = 3;
  CHECK(plain.version() == version + 3);

  Tensor made;
  {
    inference_mode guard;
    made = zeros({3});
    made(at({1})) = 1;
  }
  CHECK_THROWS_WITH_AS(made(at({1})) = 2, doctest::Contains("inference_mode"), GradError);
  CHECK(values(made) == Ints{0, 1, 0});
  {
    no_grad guard;
    a(at({0, 1})) = 7;
  }
  CHECK(values(a) == Ints{7, 7, 3});
}

TEST_CASE("first and second gradients go through writes to parts of a view") {
  const Tensor mask = from_data<bool>({true, false, true, true}, {2, 2});
  const TensorFunction f = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    const Tensor y = in[0] * in[0];
    y(Slice(1, 3), Slice(0, 2))(mask) = in[1];
    y(0, at({2, 0})) += in[1](Slice(0, 2)) * 2.0;
    y.t()(at({1, 1}), at({0, 2})) *= in[0](0, Slice(0, 2));
    const Tensor z = index_put(y, {nil, 1, at({2, 2})}, in[1](1), {.accumulate = true});
    return {z * z};
  };
  const std::vector<Tensor> in{(numbers({3, 3}) * 0.3 - 1.0).requires_grad_(), f64({0.5, -0.7, 1.1}).requires_grad_()};
  CHECK(gradcheck(f, in) == "");
  CHECK(gradgradcheck(f, in) == "");
}

TEST_CASE("the program of the page on indexing is compiled here and does what it says") {
  // clang-format off
Tensor x = arange(12).to(kFloat32).reshape({3, 4});
Tensor row = x(1), columns = x(Slice(), Slice(nil, nil, 2));   // views: x[1], x[:, ::2]
Tensor big = x(x > 5.f);                                        // x[x > 5], a copy
Tensor picked = x(tensor<int64_t>({2, 0, -1}), Ellipsis, nil);  // x[[2, 0, -1], ..., None], a copy of shape (3, 4, 1)
x(0) = ones({4});                                               // these write to x
x[2] = 7;
x(Slice(), 3) += row(3);
x(x > 10.f) = 0;
x(tensor<int64_t>({0, 1}), tensor<int64_t>({1, 2})) *= 2;
x.index_put_({tensor<int64_t>({0, 0})}, ones({}), {.accumulate = true});  // adds 1 twice
  // clang-format on
  CHECK(values(x) == Ints{3, 4, 3, 10, 4, 5, 12, 0, 7, 7, 7, 0});
  CHECK(values(big) == Ints{6, 7, 8, 9, 10, 11});
  CHECK(values(picked.select(2, 0).select(1, 0)) == Ints{8, 0, 8});
  CHECK((row.shares_storage(x) && columns.shares_storage(x) && !picked.shares_storage(x)));

  const std::string page = io::read_text(test::source_dir() / "docs/indexing.md");
  const std::string source = io::read_text(test::source_dir() / "tests/autograd/indexing_test.cpp");
  const std::size_t begin = page.find("```cpp\n") + 7;
  CHECK(source.find(page.substr(begin, page.find("```", begin) - begin)) != std::string::npos);
}
