#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>

using namespace levin;

namespace {

struct Cube : Function<Cube> {
  static Tensor forward(Context& c, const Tensor& x) {
    c.save(x);
    return x * x * x;
  }
  static Tensor backward(Context& c, const Tensor& g) { return g * 3.f * square(c.saved(0)); }
};

struct ScaledExp : Function<ScaledExp> {
  static Tensor forward(Context& c, const Tensor& x, double scale) {
    Tensor y = exp(x) * scale;
    c.save_output(y);
    return y;
  }
  static Tensor backward(Context& c, const Tensor& g) { return g * c.saved(0); }
};

struct SumAndDifference : Function<SumAndDifference> {
  static std::vector<Tensor> forward(Context&, const Tensor& a, const Tensor& b) { return {a + b, a - b}; }
  static std::vector<Tensor> backward(Context&, const std::vector<Tensor>& g) { return {g[0] + g[1], g[0] - g[1]}; }
};

struct WrongCube : Function<WrongCube> {
  static Tensor forward(Context& c, const Tensor& x) { return Cube::forward(c, x); }
  static Tensor backward(Context& c, const Tensor& g) { return g * 2.f * square(c.saved(0)); }
};

struct Nothing : Function<Nothing> {
  static Tensor forward(Context&, const Tensor& x) { return x * 0.0; }
  static Tensor backward(Context&, const Tensor& g) { return g * 0.0; }
};

Tensor leaf(std::initializer_list<double> values) { return tensor(values).to(kFloat64).requires_grad_(); }

template <class F>
TensorFunction one(F f) {
  return [f](const std::vector<Tensor>& in) -> std::vector<Tensor> { return {f(in[0])}; };
}

}  // namespace

TEST_CASE("a custom operation has first and second gradients") {
  const std::vector<Tensor> x{leaf({0.5, -1.5, 2})};
  CHECK(gradcheck(one([](const Tensor& t) { return Cube::apply(t); }), x) == "");
  CHECK(gradgradcheck(one([](const Tensor& t) { return Cube::apply(t); }), x) == "");
  CHECK(gradcheck(one([](const Tensor& t) { return ScaledExp::apply(t, 1.5); }), x) == "");
  CHECK(gradgradcheck(one([](const Tensor& t) { return ScaledExp::apply(t, 1.5); }), x) == "");
}

TEST_CASE("several inputs and outputs, one of them unused") {
  const Tensor a = leaf({1}), b = leaf({2});
  const auto y = SumAndDifference::apply(a, b);
  sum(y[1] * 3.0).backward();
  CHECK(a.grad().item<double>() == 3.0);
  CHECK(b.grad().item<double>() == -3.0);
}

TEST_CASE("nothing is recorded under no_grad") {
  no_grad guard;
  CHECK(!Cube::apply(leaf({1})).requires_grad());
}

TEST_CASE("a custom operation saves nothing where nothing is recorded") {
  const Tensor x = leaf({2});
  Tensor y;
  {
    inference_mode guard;
    y = Cube::apply(x * 1.0);
  }
  CHECK(y.is_inference());
  CHECK(y.item<double>() == 8.0);
}

TEST_CASE("gradcheck finds a wrong backward and reports where") {
  const std::string text = gradcheck(one([](const Tensor& t) { return WrongCube::apply(t); }), {leaf({0.5, 2})});
  CHECK(text.find("input 0 element 0") != std::string::npos);
}

TEST_CASE("gradcheck refuses gradients that are zero everywhere") {
  CHECK(gradcheck(one([](const Tensor& t) { return Nothing::apply(t); }), {leaf({1, 2})}).find("proves nothing") !=
        std::string::npos);
}

TEST_CASE("gradcheck requires float64 and a differentiable input") {
  CHECK(gradcheck(one([](const Tensor& t) { return t * 2.0f; }), {ones({2}).requires_grad_()}) != "");
  CHECK(gradcheck(one([](const Tensor& t) { return t.detach(); }), {leaf({1})}) == "no output requires grad");
}
