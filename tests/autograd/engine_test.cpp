#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/kernels/kernel.h>

#include <set>
#include <string>
#include <thread>

using namespace levin;

namespace {
Tensor leaf(std::initializer_list<double> values) { return tensor<double>(values).requires_grad_(); }

/// Collects the names of the kernels that run while it lives.
class Kernels final : public kernels::KernelObserver {
 public:
  Kernels() : former_(kernels::set_observer(this)) {}
  ~Kernels() override { kernels::set_observer(former_); }
  void called(const char* kernel, Device) override { names_.insert(kernel); }
  bool ran(const std::string& kernel) const { return names_.contains(kernel); }

 private:
  std::set<std::string> names_;
  kernels::KernelObserver* former_;
};
}  // namespace

TEST_CASE("backward accumulates into leaves") {
  const Tensor x = leaf({1, 2, 3}), w = leaf({4, 5, 6});
  sum(x * w).backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{4, 5, 6});
  CHECK(w.grad().to_vector<double>() == std::vector<double>{1, 2, 3});
  sum(x * w).backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{8, 10, 12});
}

TEST_CASE("leaves do not share the memory of a gradient") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4}), g = tensor<double>({10.0, 20.0});
  (x + w).backward(g);  // the same tensor reaches both leaves
  (x + w).backward(g);
  CHECK(g.to_vector<double>() == std::vector<double>{10, 20});
  CHECK(x.grad().to_vector<double>() == std::vector<double>{20, 40});
  CHECK(w.grad().to_vector<double>() == std::vector<double>{20, 40});
  x.grad().zero_();
  CHECK(w.grad().to_vector<double>() == std::vector<double>{20, 40});
}

TEST_CASE("copies of a handle are the same tensor") {
  const Tensor w = zeros({2});
  const Tensor same = w;
  w.requires_grad_();
  CHECK(same.requires_grad());
  sum(same * 3.0f).backward();
  CHECK(w.grad().to_vector<float>() == std::vector<float>{3, 3});
  CHECK(w.grad().is_same(same.grad()));
}

TEST_CASE("the gradients of a tensor that is used several times add up") {
  const Tensor x = leaf({3});
  const Tensor y = x * x + x * 2.0 + x;
  sum(y).backward();
  CHECK(x.grad().item<double>() == 9.0);
}

TEST_CASE("gradients of broadcast inputs have the input's shape") {
  const Tensor a = ones({2, 1, 3}).requires_grad_(), b = ones({4, 1}).requires_grad_(), c = ones({}).requires_grad_();
  sum(a * b + c).backward();
  CHECK(a.grad().sizes() == Shape{2, 1, 3});
  CHECK(a.grad().to_vector<float>() == std::vector<float>(6, 4.0f));
  CHECK(b.grad().to_vector<float>() == std::vector<float>(4, 6.0f));
  CHECK(c.grad().item<float>() == 24.0f);
}

TEST_CASE("gradients have the input's type") {
  const Tensor x = ones({3}).requires_grad_();
  sum(x.to(kFloat64) * 2.0).backward();
  CHECK(x.grad().dtype() == kFloat32);
  const Tensor w = full({3}, 2.0, {.dtype = kFloat64}), y = ones({3}).requires_grad_();
  sum(y * w).backward();  // the promoted product's gradient is float64
  CHECK(y.grad().dtype() == kFloat32);
}

TEST_CASE("a second backward needs retain_graph, and the error says so") {
  const Tensor x = leaf({2});
  const Tensor y = sum(x * x);
  y.backward({}, {.retain_graph = true});
  y.backward();
  CHECK(x.grad().item<double>() == 8.0);
  CHECK_THROWS_WITH_AS(y.backward(), doctest::Contains("retain_graph = true"), GradError);
}

TEST_CASE("backward refuses invalid calls") {
  const Tensor x = leaf({1, 2});
  CHECK_THROWS_WITH_AS((x * 2.0).backward(), doctest::Contains("(2,)"), GradError);
  CHECK_THROWS_WITH_AS(sum(x.detach()).backward(), doctest::Contains("does not require grad"), GradError);
  CHECK_THROWS_AS((x * 2.0).backward(ones({3}, {.dtype = kFloat64})), ShapeError);
  CHECK_THROWS_AS(arange(3).requires_grad_(), DTypeError);
}

TEST_CASE("a missing backward throws and names the operation") {
  const Tensor x = leaf({1}), y = x.detach() * 1.0;
  record("mystery", y, {x}, nullptr);
  CHECK_THROWS_WITH_AS(sum(y).backward(), doctest::Contains("[mystery]"), GradError);
}

TEST_CASE("grad returns gradients without accumulating into leaves") {
  const Tensor x = leaf({3}), w = leaf({5}), unused = leaf({1});
  const Tensor middle = x * w;
  const auto g = grad({sum(middle * middle)}, {middle, x});
  CHECK(g[0].item<double>() == 30.0);
  CHECK(g[1].item<double>() == 150.0);
  CHECK(!x.grad().defined());
  CHECK_THROWS_WITH_AS(grad({sum(x * w)}, {unused}), doctest::Contains("allow_unused"), GradError);
  CHECK(!grad({sum(x * w)}, {unused}, {.allow_unused = true})[0].defined());
}

TEST_CASE("backward with inputs accumulates only into them") {
  const Tensor x = leaf({3}), w = leaf({5});
  const Tensor y = sum(x * w);
  backward({&y, 1}, {}, {}, {&x, 1});
  CHECK(x.grad().item<double>() == 5.0);
  CHECK(!w.grad().defined());
}

TEST_CASE("gradients of gradients") {
  const Tensor x = leaf({2});
  const Tensor y = sum(x * x * x);
  const Tensor first = grad({y}, {x}, {.create_graph = true})[0];
  CHECK(first.item<double>() == 12.0);
  const Tensor second = grad({sum(first)}, {x}, {.create_graph = true})[0];
  CHECK(second.item<double>() == 12.0);
  CHECK(grad({sum(second)}, {x})[0].item<double>() == 6.0);
}

TEST_CASE("a gradient penalty reaches the weights") {
  const Tensor w = leaf({1, -2, 3}), x = leaf({0.5, 0.25, 2});
  const Tensor g = grad({sum(square(w * x))}, {x}, {.create_graph = true})[0];  // 2 w^2 x
  sum(square(g)).backward();                                                    // d/dw of 4 w^4 x^2 = 16 w^3 x^2
  const auto got = w.grad().to_vector<double>();
  CHECK(got[0] == 16 * 1 * 0.25);
  CHECK(got[1] == 16 * -8 * 0.0625);
  CHECK(got[2] == 16 * 27 * 4.0);
}

TEST_CASE("no_grad, enable_grad, inference_mode") {
  const Tensor x = leaf({1});
  {
    no_grad off;
    CHECK(!(x * 2.0).requires_grad());
    enable_grad on;
    CHECK((x * 2.0).requires_grad());
  }
  CHECK((x * 2.0).requires_grad());
  Tensor made;
  {
    inference_mode guard;
    made = ones({1}, {.dtype = kFloat64});
    CHECK(made.is_inference());
    CHECK(!(x * made).requires_grad());
    CHECK(matmul(made, made).is_inference());
    CHECK(!x.view({1, 1}).is_inference());
  }
  CHECK_THROWS_WITH_AS(x * made, doctest::Contains("inference_mode"), GradError);
  CHECK_THROWS_AS(made.requires_grad_(), GradError);
  CHECK((x * made.clone()).requires_grad());
}

TEST_CASE("grad mode is thread-local") {
  const Tensor x = leaf({1});
  no_grad off;
  bool recorded = false;
  std::thread([&] { recorded = (x * 2.0).requires_grad(); }).join();
  CHECK(recorded);
}

TEST_CASE("disjoint graphs run backward in several threads") {
  std::vector<Tensor> leaves(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&leaves, i] {
      leaves[i] = full({10}, static_cast<double>(i), {.dtype = kFloat64}).requires_grad_();
      Tensor y = leaves[i];
      for (int k = 0; k < 50; ++k) y = y + leaves[i];
      sum(y * y).backward();
    });
  for (auto& t : threads) t.join();
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(leaves[i].grad().to_vector<double>()[9] == 2.0 * 51 * 51 * static_cast<double>(i));
}

TEST_CASE("detach cuts the graph and shares memory") {
  const Tensor x = leaf({1, 2});
  const Tensor d = (x * 2.0).detach();
  CHECK(d.is_leaf());
  CHECK(!d.requires_grad());
  CHECK(x.detach().shares_storage(x));
}

TEST_CASE("anomaly mode names the forward operation") {
  const Tensor x = leaf({-1});
  detect_anomaly guard;
  CHECK_THROWS_WITH_AS(sum(sqrt(x)).backward(), doctest::Contains("\"sqrt\""), GradError);
}

TEST_CASE("retain_grad keeps the gradient of a result") {
  const Tensor x = leaf({3});
  const Tensor y = x * 2.0;
  y.retain_grad();
  sum(y * y).backward();
  CHECK(y.grad().item<double>() == 12.0);
  CHECK(y.retains_grad());
}

TEST_CASE("printing shows the tensor's place in the graph") {
  const Tensor x = ones({1}).requires_grad_();
  CHECK(to_string(x) == "tensor([1.], requires_grad=True)");
  CHECK(to_string(x * 2.0f) == "tensor([2.], grad_fn=<mul>)");
  CHECK(to_string(x.detach()) == "tensor([1.])");
}

TEST_CASE("grad computes no gradients that lead to none of its inputs") {
  const Tensor x = randn({2, 3, 6, 6}).requires_grad_(), w = randn({4, 3, 3, 3}).requires_grad_();
  const Tensor v = randn({2, 4, 4, 3, 3}).requires_grad_();
  const auto loss = [&] {
    const Tensor y = conv2d(x, w);
    return sum(y * y) + sum(conv2d(y, v[0])) + sum(v[1]);
  };
  const std::vector<Tensor> all = grad({loss()}, {x, w, v});
  const auto checks = [&](const Tensor& input, const Tensor& expected, bool of_x, bool of_w) {
    for (const bool create_graph : {false, true}) {
      const Tensor y = loss();
      const Kernels kernels;
      CHECK(grad({y}, {input}, {.create_graph = create_graph})[0].to_vector<float>() == expected.to_vector<float>());
      CHECK(kernels.ran("conv2d_backward_input") == of_x);
      CHECK(kernels.ran("conv2d_backward_weight") == of_w);
    }
  };
  checks(x, all[0], true, false);
  checks(w, all[1], true, true);   // through y, and of w itself
  checks(v, all[2], false, true);  // of v alone
  const Tensor y = loss();
  for (const Tensor& input : {x, w}) {  // a pass may need the gradients that the one before left out
    const std::size_t at = input.is_same(x) ? 0 : 1;
    CHECK(grad({y}, {input}, {.retain_graph = true})[0].to_vector<float>() == all[at].to_vector<float>());
  }
  y.backward();
  CHECK(w.grad().to_vector<float>() == all[1].to_vector<float>());
}

TEST_CASE("an activation's gradient is written to the incoming one's memory if nobody else holds it") {
  const Tensor x = tensor<double>({-1, 2}).requires_grad_(), factor = tensor<double>({3, 5});
  const std::vector<double> incoming{3, 5}, outgoing{0, 5};
  const void *before = nullptr, *after = nullptr;
  {
    const Tensor h = x * 1.0, y = relu(h);
    y.register_hook([&](const Tensor& g) {
      before = g.raw_data();
      return Tensor();
    });
    h.register_hook([&](const Tensor& g) {
      after = g.raw_data();
      return Tensor();
    });
    sum(y * factor).backward();
    CHECK(before == after);
    CHECK(x.grad().to_vector<double>() == outgoing);
  }
  SUBCASE("a hook keeps it") {
    const Tensor y = relu(x * 1.0);
    Tensor kept;
    y.register_hook([&](const Tensor& g) {
      kept = g;
      return Tensor();
    });
    sum(y * factor).backward();
    CHECK(kept.to_vector<double>() == incoming);
  }
  SUBCASE("a view of it is kept") {
    const Tensor y = relu(x * 1.0);
    Tensor kept;
    y.register_hook([&](const Tensor& g) {
      kept = g[0];
      return Tensor();
    });
    sum(y * factor).backward();
    CHECK(kept.item<double>() == 3);
  }
  SUBCASE("it is retained, or asked for") {
    const Tensor y = relu(x * 1.0);
    y.retain_grad();
    sum(y * factor).backward();
    CHECK(y.grad().to_vector<double>() == incoming);
    const Tensor z = relu(x * 1.0);
    CHECK(grad({sum(z * factor)}, {z, x})[0].to_vector<double>() == incoming);
  }
  SUBCASE("the caller gave it") {
    const Tensor g = factor.clone();
    relu(x * 1.0).backward(g);
    CHECK(g.to_vector<double>() == incoming);
  }
  SUBCASE("two operations share it") {
    sum((relu(x * 1.0) + sigmoid(x * 2.0)) * factor).backward();
    const Tensor s = sigmoid(x.detach() * 2.0), of_relu = tensor<double>({0, 5});
    // x already has the gradient of the pass above.
    CHECK(allclose(x.grad(), of_relu + of_relu + s * (1.0 - s) * 2.0 * factor));
  }
  SUBCASE("its graph is wanted") {
    const Tensor y = tanh(x * 1.0);
    const Tensor g = grad({sum(y * factor)}, {x}, {.create_graph = true})[0];
    CHECK(grad({sum(g)}, {x})[0].defined());
  }
}
