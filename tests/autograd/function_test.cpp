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

Tensor leaf(std::initializer_list<double> values) { return tensor<double>(values).requires_grad_(); }

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

namespace {

struct DoubleInPlace : Function<DoubleInPlace> {
  static Tensor forward(Context& c, const Tensor& x) {
    x.mul_(2);
    c.mark_dirty({x});
    return x;
  }
  static Tensor backward(Context&, const Tensor& g) { return g * 2.0; }
};

struct MarkedResult : Function<MarkedResult> {
  static Tensor forward(Context& c, const Tensor& x) {
    c.mark_dirty({x});
    return x * 2.0;
  }
  static Tensor backward(Context&, const Tensor& g) { return g; }
};

struct MaxAndPlace : Function<MaxAndPlace> {
  static std::vector<Tensor> forward(Context& c, const Tensor& x) {
    const auto [value, place] = max(x, 0);
    const Tensor position = place.to(kFloat64);
    c.save(place);
    c.set(x.size(0));
    c.mark_non_differentiable({position});
    return {value, position};
  }
  static Tensor backward(Context& c, const std::vector<Tensor>& g) {
    CHECK(g.size() == 2);
    return one_hot(c.saved(0), c.get<int64_t>()).to(kFloat64) * g[0];
  }
};

struct Unchanged : Function<Unchanged> {
  static Tensor forward(Context&, const Tensor& x) { return x; }
  static Tensor backward(Context&, const Tensor& g) { return g * 3.0; }
};

struct OnceCube : Function<OnceCube> {
  static constexpr bool once_differentiable = true;
  static Tensor forward(Context& c, const Tensor& x) { return Cube::forward(c, x); }
  static Tensor backward(Context& c, const Tensor& g) { return Cube::backward(c, g); }
};

struct Undefined : Function<Undefined> {
  static std::vector<Tensor> forward(Context& c, const Tensor& x) {
    c.set_materialize_grads(false);
    return {x * 1.0, x * 2.0};
  }
  static Tensor backward(Context&, const std::vector<Tensor>& g) {
    CHECK(!g[0].defined());
    return g[1] * 2.0;
  }
};

}  // namespace

TEST_CASE("an input that forward changes in place and marks takes the function's history") {
  const Tensor x = leaf({1, 2}), y = x * 1.0;
  CHECK(DoubleInPlace::apply(y).is_same(y));
  CHECK(y.grad_fn() == "Function");
  (y * y).sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{8, 16});

  const Tensor z = leaf({1, 2, 3}), base = z * 1.0, view = base.narrow(0, 1, 2);
  DoubleInPlace::apply(view);
  (base * tensor({1.0, 10.0, 100.0})).sum().backward();
  CHECK(z.grad().to_vector<double>() == std::vector<double>{1, 20, 200});

  CHECK_THROWS_WITH_AS(DoubleInPlace::apply(leaf({1})), doctest::Contains("[mark_dirty] a leaf that requires grad"),
                       GradError);
  CHECK_THROWS_WITH_AS(MarkedResult::apply(x * 1.0),
                       doctest::Contains("[mark_dirty] the tensor of shape (2,) is no result of forward"), GradError);
}

TEST_CASE("a marked result has no gradient, and the other one keeps its own") {
  const Tensor x = leaf({1, 5, 2});
  const auto y = MaxAndPlace::apply(x);
  CHECK(y[0].requires_grad());
  CHECK(!y[1].requires_grad());
  y[0].backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{0, 1, 0});
}

TEST_CASE("a custom function that returns its input leaves the input alone") {
  const Tensor x = leaf({1, 2}), y = Unchanged::apply(x);
  CHECK(x.is_leaf());
  CHECK(!y.is_same(x));
  y.sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{3, 3});
}

TEST_CASE("a second backward through a function that is differentiable once throws") {
  const Tensor x = leaf({2}), y = OnceCube::apply(x), g = ones({1}, kFloat64).requires_grad_();
  const auto first =
      grad(std::vector<Tensor>{y}, std::vector<Tensor>{x}, {.create_graph = true}, std::vector<Tensor>{g});
  CHECK(first[0].item<double>() == 12);
  CHECK_THROWS_WITH_AS(first[0].sum().backward(), doctest::Contains("once_differentiable"), GradError);
}

TEST_CASE("unused results of a function that asks for it have undefined gradients") {
  const Tensor x = leaf({1, 2});
  Undefined::apply(x)[1].sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{2, 2});
}

TEST_CASE("no storage outlives a function with marks") {
  const int64_t before = Storage::live_count();
  {
    const Tensor x = leaf({1, 2}), y = x * 1.0;
    DoubleInPlace::apply(y);
    MaxAndPlace::apply(x);
  }
  CHECK(Storage::live_count() == before);
}

TEST_CASE("the fast mode of gradcheck accepts right and finds wrong gradients, first and second") {
  const GradcheckOptions fast{.fast_mode = true};
  const std::vector<Tensor> x{leaf({0.5, -1.5, 2})};
  CHECK(gradcheck(one([](const Tensor& t) { return Cube::apply(t); }), x, fast) == "");
  CHECK(gradgradcheck(one([](const Tensor& t) { return Cube::apply(t); }), x, fast) == "");
  const std::string wrong = gradcheck(one([](const Tensor& t) { return WrongCube::apply(t); }), x, fast);
  CHECK(wrong.find("slope for input 0") != std::string::npos);
  CHECK(gradcheck(one([](const Tensor& t) { return Nothing::apply(t); }), x, fast).find("proves nothing") !=
        std::string::npos);
  CHECK(gradcheck(
            [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
              return {matmul(in[0], in[1]), in[0]};
            },
            {rand({3, 4}, kFloat64).requires_grad_(), rand({4, 2}, kFloat64).requires_grad_()}, fast) == "");
}
