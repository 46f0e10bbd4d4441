#include "support/comparison.h"

#include <levin/autograd/autocast.h>
#include <levin/autograd/autograd.h>

#include <doctest/doctest.h>

#include <atomic>

using namespace levin;

namespace {

Tensor block(const Tensor& x, const Tensor& w) { return dropout(relu(matmul(x, w)), 0.5) * sigmoid(x); }

struct Gradients {
  std::vector<float> y, x, w;
};

template <class F>
Gradients gradients_of(const F& f) {
  manual_seed(3);
  const Tensor x = randn({4, 4}).requires_grad_(), w = randn({4, 4}).requires_grad_();
  const Tensor y = f(x, w);
  square(y).sum().backward();
  return {y.to_vector<float>(), x.grad().to_vector<float>(), w.grad().to_vector<float>()};
}

bool same(const Gradients& a, const Gradients& b) { return a.y == b.y && a.x == b.x && a.w == b.w; }

}  // namespace

TEST_CASE("a checkpointed function has the same bits, and draws the same random numbers again") {
  const Gradients plain = gradients_of([](const Tensor& x, const Tensor& w) { return block(block(x, w), w); });
  const auto once = [](const Tensor& x, const Tensor& w) { return checkpoint(block, x, w); };
  CHECK(same(plain, gradients_of([&](const Tensor& x, const Tensor& w) { return once(once(x, w), w); })));
  // Nested: the outer function runs again, and with it the inner ones.
  CHECK(same(plain, gradients_of([&](const Tensor& x, const Tensor& w) {
               return checkpoint([&](const Tensor& a, const Tensor& b) { return once(once(a, b), b); }, x, w);
             })));
  CHECK_FALSE(same(plain, gradients_of([](const Tensor& x, const Tensor& w) {
                     const auto call = [](const Tensor& a, const Tensor& b) { return block(block(a, b), b); };
                     return checkpoint(CheckpointOptions{.preserve_rng_state = false}, call, x, w);
                   })));
}

TEST_CASE("a checkpoint runs its function once more in each backward, and leaves the generator alone") {
  int runs = 0;
  const Tensor x = randn({3}).requires_grad_();
  const auto f = [&](const Tensor& a) {
    ++runs;
    return exp(a) * sin(a);
  };
  const Tensor y = checkpoint(f, x).sum();
  CHECK(runs == 1);
  manual_seed(5);
  y.backward({}, {.retain_graph = true});
  CHECK(runs == 2);
  CHECK(default_generator().state() == GeneratorState{5, 0});
  const auto first = x.grad().to_vector<float>();
  y.backward();
  CHECK(runs == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(x.grad().to_vector<float>()[i] == 2 * first[i]);
}

TEST_CASE("a checkpoint works with gradients of gradients, autocast and functions of several results") {
  const Tensor x = tensor({0.3, -0.7}, kFloat64).requires_grad_();
  const auto function = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{checkpoint([](const Tensor& a) { return exp(a) * sin(a); }, in[0])};
  };
  CHECK(gradgradcheck(function, {x}) == "");

  const Tensor w = randn({4, 4}).requires_grad_(), a = randn({2, 4});
  const auto half = [&](bool checkpointed) {
    w.set_grad({});
    const auto f = [](const Tensor& input, const Tensor& weight) { return matmul(input, weight); };
    Tensor y;
    {
      autocast on(kBFloat16);
      y = checkpointed ? checkpoint(f, a, w) : f(a, w);
    }
    square(y).sum().backward();
    return w.grad().to_vector<float>();
  };
  CHECK(half(true) == half(false));

  const auto [s, c] = checkpoint([](const Tensor& t) { return std::pair(sin(t), cos(t)); }, x);
  (s * c).sum().backward();
  CHECK(x.grad()[0].item<double>() == levin::test::approx(std::cos(0.6), {.relative = 1e-12}));
}

TEST_CASE("a checkpoint whose function differs the second time is refused") {
  int runs = 0;
  const Tensor x = ones({2}).requires_grad_();
  const Tensor y = checkpoint([&](const Tensor& a) { return runs++ == 0 ? exp(a) : exp(a) * sin(a); }, x);
  CHECK_THROWS_WITH_AS(y.sum().backward(), doctest::Contains("[checkpoint] the second run saved"), GradError);
}

TEST_CASE("saved_tensors_hooks replace what operations save, but not parameters") {
  const Tensor x = tensor({1.5, 2.5}, kFloat64), w = tensor({2.0, 3.0}, kFloat64).requires_grad_();
  int packed = 0, unpacked = 0;
  Tensor y;
  {
    saved_tensors_hooks hooks(
        [&](const Tensor& t) -> std::any {
          ++packed;
          CHECK_FALSE(grad_enabled());
          return t * 10;
        },
        [&](const std::any& p) {
          ++unpacked;
          return std::any_cast<Tensor>(p) / 10;
        });
    y = (x * w).sum();
  }
  CHECK(packed == 1);  // x; w is a leaf
  y.backward();
  CHECK(unpacked == 1);
  CHECK(w.grad().to_vector<double>() == std::vector<double>{1.5, 2.5});
}

TEST_CASE("of nested hooks the innermost counts, and wrong ones are named") {
  const Tensor x = tensor({1.5, 2.5}, kFloat64), w = tensor({2.0, 3.0}, kFloat64).requires_grad_();
  int outer = 0, inner = 0;
  const auto counting = [](int& n) {
    return [&n](const Tensor& t) -> std::any {
      ++n;
      return t;
    };
  };
  const auto as_is = [](const std::any& p) { return std::any_cast<Tensor>(p); };
  {
    saved_tensors_hooks a(counting(outer), as_is);
    {
      saved_tensors_hooks b(counting(inner), as_is);
      (x * w).sum();
    }
    (x * w).sum();
  }
  CHECK(inner == 1);
  CHECK(outer == 1);
  Tensor y;
  {
    saved_tensors_hooks wrong([](const Tensor& t) -> std::any { return t.to(kFloat32); }, as_is);
    y = (x * w).sum();
  }
  CHECK_THROWS_WITH_AS(y.backward(),
                       doctest::Contains("[mul] unpack of saved_tensors_hooks returned (2,) float32 on cpu, but the "
                                         "saved tensor was (2,) float64"),
                       GradError);
  CHECK_THROWS_AS(saved_tensors_hooks({}, as_is), ValueError);
}

TEST_CASE("save_on_cpu gives the gradients of the usual run") {
  const Tensor x = randn({3, 3}).requires_grad_();
  const auto run = [&] {
    x.set_grad({});
    (exp(x) * sin(x)).sum().backward();
    return x.grad().to_vector<float>();
  };
  const auto usual = run();
  save_on_cpu guard;
  CHECK(run() == usual);
}
