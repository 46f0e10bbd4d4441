#include <levin/autograd/autograd.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;

namespace {

using Values = std::vector<double>;

Tensor f64(const Values& values) { return tensor(values, {.dtype = kFloat64}); }

}  // namespace

TEST_CASE("jacobian, hessian and their products are those by hand") {
  const Tensor x = f64({2, 3});
  // f = (x0^2 x1, x1), J = ((2 x0 x1, x0^2), (0, 1))
  const TensorMap f = [](const Tensor& a) { return stack({square(a[0]) * a[1], a[1] * 1}); };
  const Tensor j = jacobian(f, x);
  CHECK(j.sizes() == Shape{2, 2});
  CHECK(j.to_vector<double>() == Values{12, 4, 0, 1});
  CHECK_FALSE(j.requires_grad());
  const auto [value, row] = vjp(f, x, f64({1, 10}));
  CHECK(value.to_vector<double>() == Values{12, 3});
  CHECK(row.to_vector<double>() == Values{12, 14});
  CHECK(jvp(f, x, f64({1, 10})).product.to_vector<double>() == Values{52, 10});

  // g = x0^2 x1 + x1^3, H = ((2 x1, 2 x0), (2 x0, 6 x1))
  const TensorMap g = [](const Tensor& a) { return square(a[0]) * a[1] + pow(a[1], 3); };
  CHECK(hessian(g, x).to_vector<double>() == Values{6, 4, 4, 18});
  CHECK(hvp(g, x, f64({1, 10})).product.to_vector<double>() == Values{46, 184});
  CHECK(hessian([](const Tensor& a) { return sum(a) * 3; }, x).to_vector<double>() == Values{0, 0, 0, 0});
}

TEST_CASE("jacobian of several inputs and outputs, with zeros for those that are not connected") {
  const TensorListMap f = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] * sum(in[1]), exp(in[1])};
  };
  const auto j = jacobian(f, {f64({1, 2}), f64({0, 0, 0})});
  REQUIRE(j.size() == 2);
  CHECK(j[0][1].sizes() == Shape{2, 3});
  CHECK(j[0][1].to_vector<double>() == Values{1, 1, 1, 2, 2, 2});
  CHECK(j[1][0].to_vector<double>() == Values(6, 0.0));
  CHECK(j[1][1].to_vector<double>() == Values{1, 0, 0, 0, 1, 0, 0, 0, 1});
}

TEST_CASE("derivatives with create_graph can be differentiated again") {
  const Tensor x = f64({0.5, -1.5}).requires_grad_();
  const TensorMap cube = [](const Tensor& a) { return pow(a, 3).sum(); };
  hessian(cube, x, {.create_graph = true}).sum().backward();
  CHECK(x.grad().to_vector<double>() == Values{6, 6});
  const auto by_jvp = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{
        jvp([](const Tensor& a) { return sin(a) * a; }, in[0], ones_like(in[0]), {.create_graph = true}).product};
  };
  CHECK(gradcheck(by_jvp, {f64({0.3, 0.9}).requires_grad_()}) == "");
}

TEST_CASE("functional derivatives refuse what has none") {
  const Tensor x = ones({2}, kFloat64);
  const TensorMap constant = [](const Tensor&) { return ones({}, kFloat64); };
  CHECK_THROWS_WITH_AS(jacobian(constant, x), doctest::Contains("[jacobian] the result of f does not require grad"),
                       GradError);
  CHECK_THROWS_WITH_AS(hessian([](const Tensor& a) { return a * 2; }, x),
                       doctest::Contains("[hessian] the result of f is (2,), one element is needed"), ShapeError);
  CHECK_THROWS_WITH_AS(jvp([](const Tensor& a) { return a * 2; }, x, ones({3})),
                       doctest::Contains("[jvp] v is (3,), and x is (2,)"), ShapeError);
}

TEST_CASE("vmap calls a function for each slice") {
  const Tensor a = f64({1, 2, 3, 4, 5, 6}).reshape({3, 2}), b = f64({1, 0, 0, 1, 1, 1}).reshape({3, 2});
  CHECK(vmap([](const Tensor& x, const Tensor& y) { return dot(x, y); })(a, b).to_vector<double>() == Values{1, 4, 11});
  CHECK(vmap([](const Tensor& x) { return x * 2; }, 1, 1)(a).to_vector<double>() == (a * 2).to_vector<double>());
}

TEST_CASE("the gradient graph as text and for Graphviz") {
  const Tensor a = ones({2, 3}).requires_grad_(), b = ones({3}).requires_grad_();
  const Tensor y = (a * b).sum();
  CHECK(graph_text(y) == "0 sum () <- 1\n1 mul (2, 3) <- 2, 3\n2 leaf (2, 3)\n3 leaf (3,)\n");
  CHECK(graph_text(ones({2})).empty());
  const std::string dot = graph_dot(y);
  CHECK(dot.starts_with("digraph gradients {"));
  CHECK(dot.find("n1 [label=\"mul\\n(2, 3)\"];") != std::string::npos);
  CHECK(dot.find("n1 -> n3;") != std::string::npos);
}
