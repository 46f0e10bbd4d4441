#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>

using namespace levin;

namespace {

Tensor numbers(const Shape& sizes) { return arange(sizes.numel()).to(kFloat64).reshape(sizes); }
std::vector<int> values(const Tensor& t) { return t.to_vector<int>(); }

using Make = std::function<Tensor(const Tensor&)>;
struct ViewCase {
  const char* name;
  Shape input;
  Make make;
};

const std::vector<ViewCase>& cases() {
  static const std::vector<ViewCase> all{
      {"view",
       {2, 6},
       [](const Tensor& x) {
         return x.view({3, 4});
       }},
      {"reshape",
       {2, 6},
       [](const Tensor& x) {
         return x.reshape({-1, 3});
       }},
      {"flatten", {2, 3, 2}, [](const Tensor& x) { return x.flatten(1); }},
      {"transpose", {2, 3, 4}, [](const Tensor& x) { return x.transpose(0, -1); }},
      {"permute",
       {2, 3, 4},
       [](const Tensor& x) {
         return x.permute({2, 0, 1});
       }},
      {"narrow", {4, 3}, [](const Tensor& x) { return x.narrow(0, 1, 2); }},
      {"slice", {7, 2}, [](const Tensor& x) { return x.slice(0, Slice(1, nil, 2)); }},
      {"select", {3, 4}, [](const Tensor& x) { return x.select(1, -1); }},
      {"expand",
       {1, 3},
       [](const Tensor& x) {
         return x.expand({2, 4, -1});
       }},
      {"squeeze", {1, 3, 1}, [](const Tensor& x) { return x.squeeze(); }},
      {"unsqueeze", {2, 3}, [](const Tensor& x) { return x.unsqueeze(1); }},
      {"unfold", {5, 2}, [](const Tensor& x) { return x.unfold(0, 3, 1); }},
      {"as_strided",
       {9},
       [](const Tensor& x) {
         return as_strided(x, {3, 3}, {2, 1}, 1);
       }},
      {"unfold of a transposed tensor", {3, 5}, [](const Tensor& x) { return x.t().unfold(0, 3, 2); }},
      {"unfold of a slice", {7, 3}, [](const Tensor& x) { return x(Slice(1, nil, 2), Slice(0, 2)).unfold(1, 2, 1); }},
      {"unfold of an expanded tensor",
       {1, 4},
       [](const Tensor& x) {
         return x.expand({3, 4}).unfold(1, 2, 1);
       }},
      {"as_strided of a transposed tensor",
       {3, 4},
       [](const Tensor& x) {
         return as_strided(x.t(), {2, 3}, {3, 4});
       }},
      {"as_strided of a slice",
       {12},
       [](const Tensor& x) {
         return as_strided(x(Slice(2, nil, 3)), {3, 2}, {3, 3}, 2);
       }},
      {"index", {4, 3, 2}, [](const Tensor& x) { return x(Slice(nil, nil, 2), nil, Ellipsis, 1); }},
      {"of a transposed tensor", {3, 4}, [](const Tensor& x) { return x.t()(Slice(1, 3), 2); }},
      {"split", {5, 2}, [](const Tensor& x) { return x.split(2)[1]; }},
      {"unbind", {3, 2}, [](const Tensor& x) { return x.unbind(1)[1]; }},
  };
  return all;
}

}  // namespace

TEST_CASE("views share memory and have correct first and second gradients") {
  for (const ViewCase& c : cases()) {
    CAPTURE(c.name);
    const Tensor x = numbers(c.input);
    const Tensor y = c.make(x);
    CHECK(y.shares_storage(x));
    const std::string name = c.name;
    if (name != "expand" && !name.starts_with("unfold") && !name.starts_with("as_strided")) {
      y.fill_(-1.0);  // every element of the view is an element of the base
      CHECK(sum(x.eq(-1.0)).item<int64_t>() == y.numel());
    }
    const TensorFunction f = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      const Tensor v = c.make(in[0]);
      return {v * v};
    };
    const std::vector<Tensor> in{(numbers(c.input) * 0.3 - 1.0).requires_grad_()};
    CHECK(gradcheck(f, in) == "");
    CHECK(gradgradcheck(f, in) == "");
  }
}

TEST_CASE("indexing reads like Python") {
  const Tensor x = numbers({3, 4});
  CHECK(values(x(1)) == std::vector<int>{4, 5, 6, 7});
  CHECK(values(x(-1, Slice(1, -1))) == std::vector<int>{9, 10});
  CHECK(values(x(Ellipsis, 0)) == std::vector<int>{0, 4, 8});
  CHECK(values(x(Slice(nil, nil, 2), Slice(2, nil))) == std::vector<int>{2, 3, 10, 11});
  CHECK(x(nil, 1, nil).sizes() == Shape{1, 1, 4});
  CHECK(x(Slice(5, 9)).sizes() == Shape{0, 4});
  CHECK(values(x[2]) == std::vector<int>{8, 9, 10, 11});
  CHECK(x(1, 2).item<int>() == 6);
}

TEST_CASE("indexing refuses what Python refuses") {
  const Tensor x = numbers({3, 4});
  CHECK_THROWS_WITH_AS(x(3), doctest::Contains("index 3 is out of range for axis 0 of size 3"), IndexError);
  CHECK_THROWS_AS(x(0, 0, 0), IndexError);
  CHECK_THROWS_AS(x(Ellipsis, Ellipsis), IndexError);
  CHECK_THROWS_AS(x(Slice(nil, nil, -1)), ValueError);
  CHECK_THROWS_AS(x.transpose(0, 2), IndexError);
  CHECK_THROWS_WITH_AS(x.t().view({12}), doctest::Contains("reshape()"), ShapeError);
  CHECK_THROWS_AS(x.view({5, -1}), ShapeError);
  CHECK_THROWS_AS(x.narrow(1, 2, 3), IndexError);
  CHECK_THROWS_AS(x.split({1, 1}), ShapeError);
  CHECK_THROWS_AS(as_strided(x, {13}, {1}), ShapeError);
  CHECK_THROWS_AS(as_strided(x, {2}, {-1}), ShapeError);
}

TEST_CASE("reshape copies only when it must") {
  const Tensor x = numbers({3, 4});
  CHECK(x.reshape({2, 6}).shares_storage(x));
  CHECK(!x.t().reshape({12}).shares_storage(x));
  CHECK(values(x.t().reshape({12}))[1] == 4);
  CHECK(zeros({0, 3}).reshape({3, 0}).numel() == 0);
}

TEST_CASE("edits through windows of a recorded non-contiguous tensor reach it") {
  const Tensor x = (numbers({3, 4}) + 1.0).requires_grad_();
  const Tensor y = (x * 1.0).t();            // (4, 3)
  const Tensor windows = y.unfold(0, 2, 2);  // (2, 3, 2)
  CHECK(windows.shares_storage(y));
  windows.select(0, 1).mul_(10.0);
  CHECK(values(y) == std::vector<int>{1, 5, 9, 2, 6, 10, 30, 70, 110, 40, 80, 120});
  sum(y).backward();
  CHECK(values(x.grad()) == std::vector<int>{1, 1, 10, 10, 1, 1, 10, 10, 1, 1, 10, 10});

  const Tensor z = (x * 1.0).t();
  as_strided(z, {2}, {5}).copy_(zeros({2}, {.dtype = kFloat64}));
  x.set_grad({});
  sum(z).backward();
  CHECK(values(x.grad()) == std::vector<int>{0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("split and chunk cover an axis") {
  const Tensor none = zeros({2, 0});
  CHECK(none.chunk(3, 1).size() == 3);
  for (const Tensor& part : none.chunk(3, 1)) CHECK(part.sizes() == Shape{2, 0});
  const Tensor x = numbers({7, 2});
  CHECK(x.chunk(3).size() == 3);
  CHECK(x.chunk(3)[2].sizes() == Shape{1, 2});
  CHECK(x.split({3, 4})[1].sizes() == Shape{4, 2});
  CHECK(numbers({20}).split(1).size() == 20);
}

TEST_CASE("0-dim tensors") {
  const Tensor x = tensor(2.5);
  CHECK(x.dim() == 0);
  CHECK(x.reshape({1, 1}).sizes() == Shape{1, 1});
  CHECK(x.unsqueeze(0).squeeze().dim() == 0);
  CHECK(x.flatten().sizes() == Shape{1});
  CHECK_THROWS_AS(x[0], IndexError);
}

TEST_CASE("the diagonal of a leaf whose elements share memory has the gradient of each element") {
  const Tensor x = numbers({3}).expand({3, 3}).detach().requires_grad_();
  (x.diagonal() * tensor({1.0, 2.0, 3.0})).sum().backward();
  CHECK(values(x.grad()) == std::vector<int>{1, 0, 0, 0, 2, 0, 0, 0, 3});
}

namespace {

Tensor gradient_of_parts(const std::vector<Tensor>& parts, const Tensor& x, const std::vector<Tensor>& gradients) {
  return grad(parts, std::span(&x, 1), {}, gradients)[0];
}

}  // namespace

TEST_CASE("split joins gradients of its parts without a copy where they are neighbours in one memory") {
  const Tensor x = randn({2, 6, 5}).requires_grad_();
  const auto gradient = [&](const std::vector<Tensor>& gs) { return gradient_of_parts(x.split(2, 1), x, gs); };
  const Tensor g = randn({2, 6, 5});
  const std::vector<Tensor> neighbours = g.split(2, 1);
  const Tensor joined = gradient(neighbours);
  CHECK(joined.to_vector<float>() == g.to_vector<float>());
  CHECK(joined.shares_storage(g));
  // The same values from other memory, in another order, and with a part that has no gradient.
  const auto values = [](const std::vector<Tensor>& parts) { return cat(parts, 1).to_vector<float>(); };
  for (const std::vector<Tensor>& gs : std::vector<std::vector<Tensor>>{
           {neighbours[0].clone(), neighbours[1], neighbours[2]},
           {neighbours[0], neighbours[1], neighbours[0]},
           {neighbours[2], neighbours[1], neighbours[0]},
           {neighbours[0], neighbours[2], neighbours[1]},
           {neighbours[0], neighbours[0], neighbours[0]}}) {
    const Tensor dx = gradient(gs);
    CHECK(dx.to_vector<float>() == values(gs));
    CHECK_FALSE(dx.shares_storage(g));
  }
  std::vector<Tensor> some = x.split(2, 1);
  const Tensor zero = zeros({2, 2, 5});
  CHECK(grad({some[0], some[2]}, {x}, {}, {neighbours[0], neighbours[2]})[0].to_vector<float>() ==
        values({neighbours[0], zero, neighbours[2]}));
}

TEST_CASE("split's gradient never shares memory with itself, and lies in memory as what was split") {
  const Tensor steps = arange(6.0f);
  const Tensor x = randn({3, 4}).requires_grad_();  // three rows that overlap in the memory of `steps`
  const std::vector<Tensor> overlapping{steps.narrow(0, 0, 4), steps.narrow(0, 1, 4), steps.narrow(0, 2, 4)};
  Tensor dx = gradient_of_parts(x.unbind(0), x, overlapping);
  CHECK_FALSE(dx.shares_storage(steps));
  CHECK(dx.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5});
  const Tensor turned = randn({5, 3, 4}).permute({1, 2, 0}).detach().requires_grad_();
  const Tensor g = randn({4, 5});
  dx = gradient_of_parts(turned.unbind(0), turned, {g, g, g});
  CHECK(dx.strides() == turned.strides());
  CHECK(dx.select(0, 1).to_vector<float>() == g.to_vector<float>());
  dx = grad({turned.unbind(0)[1]}, {turned}, {}, {g})[0];
  CHECK(dx.to_vector<float>() == cat({zeros({20}), g.flatten(), zeros({20})}).to_vector<float>());
}

TEST_CASE("a leaf's gradient does not share memory with the gradients that a program gives") {
  const Tensor x = randn({2, 3}).requires_grad_(), g = ones({2, 3});
  backward(x.unbind(0), g.unbind(0));
  g.fill_(7);
  CHECK(x.grad().to_vector<float>() == std::vector<float>(6, 1.0f));
}
