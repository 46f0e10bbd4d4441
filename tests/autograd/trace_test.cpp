// Operations announce themselves to a tracer: once each, with the operations inside hidden or announced in their place.
#include <levin/autograd/ops.h>
#include <levin/autograd/trace.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace levin;

namespace {

struct Listener : Tracer {
  std::set<std::string> known;
  std::vector<std::string> names;
  std::vector<TracedOperation> operations;
  std::vector<std::vector<Tensor>> outputs;

  bool knows(const TracedOperation& o) override { return known.contains(o.name); }
  void computed(const TracedOperation& o, std::span<const Tensor> results) override {
    names.emplace_back(o.name);
    operations.push_back(o);
    outputs.emplace_back(results.begin(), results.end());
  }
};

/// Names of the operations that f calls, but for copies that the kernels need.
template <class F>
std::vector<std::string> announced(Listener& listener, const F& f) {
  const TraceGuard guard(&listener);
  f();
  std::erase(listener.names, "identity");
  return listener.names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a primitive operation announces its inputs, output and attributes") {
  Listener l;
  const Tensor a = ones({2, 3}), b = ones({3});
  Tensor y;
  CHECK(announced(l, [&] { y = sub(a, b); }) == Names{"add"});
  REQUIRE(l.operations.size() == 1);
  CHECK(l.operations[0].inputs[0].is_same(a));
  CHECK(l.operations[0].inputs[1].is_same(b));
  CHECK(l.outputs[0][0].is_same(y));
  const TraceAttribute& factor = l.operations[0].attributes[1];
  CHECK(std::string(factor.name) == "p0");
  CHECK(std::get<double>(factor.value) == -1);
}

TEST_CASE("a composition hides its operations if the tracer knows it, otherwise they are announced") {
  const Tensor x = ones({1, 2, 5}), w = ones({3, 2, 3});
  Listener knows, does_not;
  knows.known = {"conv1d"};
  CHECK(announced(knows, [&] { conv1d(x, w, {}, {.stride = 2}); }) == Names{"conv1d"});
  CHECK(std::get<2>(knows.operations[0].attributes[0].value) == std::vector<int64_t>{2});
  CHECK(!knows.operations[0].inputs[2].defined());
  does_not.known = {"conv2d"};
  CHECK(announced(does_not, [&] { conv1d(x, w); }) == Names{"unsqueeze", "unsqueeze", "conv2d", "squeeze"});
}

TEST_CASE("an operation that calls itself, and one that follows it, are announced") {
  Listener l;
  l.known = {"linear"};
  announced(l, [] {
    linear(ones({2, 2, 3}), ones({4, 3}));
    scaled_dot_product_attention(ones({1, 2, 4}), ones({1, 2, 4}), ones({1, 2, 4}));
    linear(ones({2, 3}), ones({4, 3}));
  });
  std::erase(l.names, "full");
  CHECK(l.names.front() == "linear");
  CHECK(l.names.back() == "linear");
  CHECK(std::ranges::count(l.names, "linear") == 2);
  CHECK(std::ranges::count(l.names, "matmul") == 2);
  CHECK(std::ranges::count(l.names, "scaled_dot_product_attention") == 0);
}

TEST_CASE("an error inside a hidden operation leaves the tracer in place") {
  Listener l;
  l.known = {"conv1d", "conv2d"};
  const TraceGuard guard(&l);
  CHECK_THROWS_AS(conv1d(ones({1, 2, 5}), ones({3, 4, 3})), ShapeError);
  CHECK(tracing());
  l.known.clear();
  CHECK_THROWS_AS(conv1d(ones({1, 2, 5}), ones({3, 4, 3})), ShapeError);
  CHECK(tracing());
  l.names.clear();
  relu(ones({2}));
  CHECK(l.names == Names{"full", "relu"});
}

TEST_CASE("edits in place announce the operation and the edited tensor") {
  Listener l;
  const Tensor x = ones({2}), y = ones({2});
  CHECK(announced(l, [&] { x.mul_(y).copy_(y); }) == Names{"mul", "copy_", "copy_"});
  CHECK(l.outputs.back()[0].is_same(x));
  CHECK(x.version() == 2);
}

TEST_CASE("tracing is a matter of one thread and one scope") {
  CHECK(!tracing());
  Listener outer, inner;
  {
    const TraceGuard guard(&outer);
    {
      const TraceGuard nested(&inner);
      ones({1});
      const TraceGuard off(nullptr);
      CHECK(!tracing());
      ones({1});
    }
    zeros({1});
    CHECK(tracing());
  }
  CHECK(!tracing());
  CHECK(inner.names == Names{"full"});
  CHECK(outer.names == Names{"full"});
}
