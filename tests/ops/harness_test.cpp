// The harness reports each planted defect.

#include "support/ops/op_case.h"
#include "support/shard.h"

#include <levin/autograd/ops.h>
#include <levin/autograd/record.h>
#include <levin/core/parallel.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <set>

using namespace levin;
using namespace levin::test;

namespace {

/// Computes x^2 with a faulty forward or backward.
Tensor planted_square(const Tensor& x, double forward_error, double backward_factor) {
  Tensor y;
  {
    no_grad guard;
    y = add(square(x), Scalar(forward_error));
  }
  static thread_local double factor;
  factor = backward_factor;
  if (Context* c = record("planted_square", y, {x},
                          [](Context& k, const Tensor& g) -> Grads { return {g * k.saved(0) * factor}; }))
    c->save(x);
  return y;
}

OpCase square_case(double forward_error, double backward_factor) {
  return {.name = "planted",
          .op = [=](const Tensors& x) -> Tensors { return {planted_square(x[0], forward_error, backward_factor)}; },
          .reference = pointwise([](double x) { return x * x; }),
          .samples = {sample({{2, 3}}, uniform(0.5, 2))}};
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a correct operation passes every mode") {
  const OpCase c = square_case(0, 2);
  CHECK(check_forward(c) == "");
  CHECK(check_gradients(c) == "");
  CHECK(check_second_gradients(c) == "");
  CHECK(check_thread_counts(c) == "");
}

TEST_CASE("a wrong forward is reported with its worst element") {
  const std::string wrong = check_forward(square_case(1e-4, 2));
  CHECK(mentions(wrong, "planted"));
  CHECK(mentions(wrong, "6 of 6 elements differ; the worst at ["));
  CHECK(mentions(wrong, "allowed"));
}

TEST_CASE("a forward error of a few ulps is reported in f32") {
  OpCase c = square_case(0, 2);
  c.dtypes = {DType::f32};
  c.op = [](const Tensors& x) -> Tensors { return {square(x[0]) * (1.0 + 4 * 0x1p-23)}; };
  CHECK(mentions(check_forward(c), "differ"));
}

TEST_CASE("a wrong backward is reported") { CHECK(mentions(check_gradients(square_case(0, 2.01)), "planted")); }

TEST_CASE("a gradient of zeros is refused") {
  CHECK(check_gradients(square_case(0, 0)) != "");
  OpCase c = square_case(0, 2);
  c.op = [](const Tensors& x) -> Tensors { return {x[0] * 0.0}; };
  CHECK(check_gradients(c) != "");
}

TEST_CASE("a wrong second derivative is reported") {
  OpCase c = square_case(0, 2);
  c.op = [](const Tensors& x) -> Tensors {
    const Tensor value = x[0].detach();  // the gradient 2 x treats x as a constant
    const Tensor y = x[0] * value * 2.0;
    return {y - (value * value).detach()};
  };
  CHECK(check_gradients(c) == "");
  CHECK(check_second_gradients(c) != "");
}

/// Computes x^2 with a wrong gradient at one element.
Tensor square_wrong_at(const Tensor& x, int64_t at, double by) {
  static thread_local int64_t place;
  static thread_local double factor;
  place = at, factor = by;
  Tensor y;
  {
    no_grad guard;
    y = square(x);
  }
  if (Context* c = record("square_wrong_at", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor own = g * k.saved(0) * 2.0;
        own.detach().flatten()[place % own.numel()].mul_(factor);
        return {own};
      }))
    c->save(x);
  return y;
}

TEST_CASE("one wrong gradient of a large sample is reported") {
  OpCase c = square_case(0, 2);
  c.large = {sample({{100'003}}, uniform(0.5, 2))};
  CHECK(check_large_gradients(c) == "");
  for (const int64_t place : {0, 50'000, 100'002}) {
    c.op = [=](const Tensors& x) -> Tensors { return {square_wrong_at(x[0], place, x[0].numel() > 6 ? 0 : 1)}; };
    CHECK(check_gradients(c) == "");
    CHECK(mentions(check_large_gradients(c), "the slope along a random direction"));
    c.op = [=](const Tensors& x) -> Tensors {
      return {square_wrong_at(x[0], place, x[0].dtype() == DType::f32 ? 1.0001 : 1)};
    };
    CHECK(mentions(check_large_gradients(c), "gradient 0 1 of 100003 elements differ"));
  }
  c.op = [](const Tensors& x) -> Tensors { return {x[0] * 0.0}; };
  CHECK(mentions(check_large_gradients(c), "the slope along a random direction"));
}

TEST_CASE("a backward that assumes a contiguous incoming gradient is reported") {
  OpCase c = square_case(0, 2);
  c.large = {sample({{300, 40}}, uniform(0.5, 2))};
  static thread_local bool right;
  for (const bool is_right : {true, false}) {
    right = is_right;
    c.op = [](const Tensors& x) -> Tensors {
      Tensor y;
      {
        no_grad guard;
        y = square(x[0]);
      }
      if (Context* k = record("planted_strides", y, {x[0]}, [](Context& own, const Tensor& g) -> Grads {
            const Tensor raw = g.is_contiguous() || right
                                   ? g
                                   : as_strided(g, g.sizes(), contiguous_strides(g.sizes()));
            return {raw * own.saved(0) * 2.0};
          }))
        k->save(x[0]);
      return {y};
    };
    CHECK((check_incoming_layouts(c) == "") == right);
    CHECK((check_large_gradients(c) == "") == right);
  }
  CHECK(mentions(check_incoming_layouts(c), "for an incoming gradient that is transposed, gradient 0"));
}

TEST_CASE("results that depend on the number of threads are reported") {
  OpCase c = square_case(0, 2);
  c.op = [](const Tensors& x) -> Tensors { return {x[0] * static_cast<double>(num_threads())}; };
  CHECK(mentions(check_thread_counts(c), "threads"));
}

TEST_CASE("a write outside of a buffer is reported") {
  OpCase c = square_case(0, 2);
  c.differentiable = false;
  c.op = [](const Tensors& x) -> Tensors {
    const Tensor y = square(x[0]).contiguous();
    auto* end = static_cast<std::byte*>(y.raw_data()) + y.storage()->bytes();
    *end = ~*end;
    return {y};
  };
  CHECK(mentions(check_forward(c), "outside"));
}

TEST_CASE("a wrong shape, type or number of outputs is reported") {
  OpCase c = square_case(0, 2);
  c.op = [](const Tensors& x) -> Tensors { return {square(x[0]).flatten()}; };
  CHECK(mentions(check_forward(c), "has shape (6,), expected is (2, 3)"));
  c.op = [](const Tensors& x) -> Tensors { return {square(x[0]).to(DType::f64)}; };
  CHECK(mentions(check_forward(c), "output 0 is float64, expected float32"));
  c.op = [](const Tensors& x) -> Tensors { return {square(x[0]), x[0]}; };
  CHECK(mentions(check_forward(c), "gives 2 outputs"));
}

TEST_CASE("a wrong result on a device is reported") {
  CHECK(check_device(square_case(0, 2), kCpu) == "");
  CHECK(mentions(check_device(square_case(1e-4, 2), kCpu), "planted"));
  OpCase c = square_case(0, 2);  // wrong only in the device's type
  c.op = [](const Tensors& x) -> Tensors { return {planted_square(x[0], 0, x[0].dtype() == DType::f32 ? 2.01 : 2)}; };
  CHECK(mentions(check_device(c, kCpu), "gradients of planted"));
}

TEST_CASE("a small selection has each sample and each pair of a type and a layout") {
  const char* const before = std::getenv("LEVIN_SMALL_CASES");
  const std::string kept = before ? before : "0";
  OpCase c = square_case(0, 2);
  c.differentiable = false;
  c.dtypes = kFloatTypes;
  c.tolerance = {.ulps = 4};
  c.samples = {sample({{0}}), sample({{2, 3}}), sample({{5, 7}}), sample({{3, 1}})};
  std::set<std::string> shapes;
  std::set<std::pair<DType, bool>> pairs;
  int runs = 0;
  c.op = [&](const Tensors& x) -> Tensors {
    shapes.insert(to_string(x[0].sizes()));
    pairs.insert({x[0].dtype(), x[0].is_contiguous()});
    ++runs;
    return {square(x[0])};
  };
  setenv("LEVIN_SMALL_CASES", "1", 1);
  CHECK(check_device(c, kCpu) == "");
  CHECK(shapes.size() == 4);
  CHECK(pairs.size() == 8);
  CHECK(runs == 1 + 3 * 6);  // 16 pairs over 3 samples
  setenv("LEVIN_SMALL_CASES", "0", 1);
  runs = 0;
  CHECK(check_device(c, kCpu) == "");
  CHECK(runs == 4 * 16);
  setenv("LEVIN_SMALL_CASES", kept.c_str(), 1);
}

TEST_CASE("shards take every item once, and an invalid LEVIN_SHARD is refused") {
  struct Variable {
    ~Variable() { before.empty() ? unsetenv("LEVIN_SHARD") : setenv("LEVIN_SHARD", before.c_str(), 1); }
    std::string before = std::getenv("LEVIN_SHARD") ? std::getenv("LEVIN_SHARD") : "";
  } const restored;
  const auto taken = [](const char* text) {
    setenv("LEVIN_SHARD", text, 1);
    std::vector<std::size_t> items;
    for (std::size_t i = 0; i < 10; ++i)
      if (in_shard(i)) items.push_back(i);
    return items;
  };
  CHECK(taken("1/4") == std::vector<std::size_t>{0, 4, 8});
  CHECK(taken("2/4") == std::vector<std::size_t>{1, 5, 9});
  CHECK(taken("3/4") == std::vector<std::size_t>{2, 6});
  CHECK(taken("4/4") == std::vector<std::size_t>{3, 7});
  CHECK(taken("1/1").size() == 10);
  CHECK(taken("12/12").empty());
  for (const char* wrong : {"", "0/4", "5/4", "1", "1/", "/4", "1/0", "a/4", "1/4x", "-1/4", "1 /4"}) {
    CHECK_THROWS_WITH_AS(taken(wrong),
                         ("[tests] LEVIN_SHARD=" + std::string(wrong) + ": give i/n, with i from 1 to n.").c_str(),
                         UsageError);
  }
  unsetenv("LEVIN_SHARD");
  CHECK(in_shard(7));
}

TEST_CASE("a missing error, or one with another message, is reported") {
  OpCase c = square_case(0, 2);
  c.errors = {{.expected = "three", .run = [] { throw ShapeError("two"); }}};
  CHECK(mentions(check_errors(c), "expected \"three\""));
  c.errors = {{.expected = "three", .run = [] {}}};
  CHECK(mentions(check_errors(c), "accepts"));
  c.errors = {{.expected = "two", .run = [] { throw ShapeError("two"); }}};
  CHECK(check_errors(c) == "");
}

TEST_CASE("the tolerance model") {
  const Tolerance t{.ulps = 2, .scale = 3};
  CHECK(allowance({.ulps = 2}, DType::f32, 8.0, 100) == 2 * 0x1p-23 * 8);
  CHECK(allowance(t, DType::f64, 0.0, 10) == 4 * 0x1p-52 * 30);
  CHECK(allowance(t, DType::bf16, 1.0, 1) == 2 * 0x1p-7 + 4 * 0x1p-23 * 3);
  CHECK(allowance(t, DType::i64, 5.0, 10) == 0);
  const Tensor nan = tensor({static_cast<float>(NAN), 1.f});
  CHECK(compare(nan, {NAN, 1.0}, {}) == "");
  CHECK(compare(nan, {1.0, 1.0}, {}) != "");
  CHECK(compare(tensor({INFINITY}), {1e300}, {}) == "");
}

TEST_CASE("inputs have the same values in every type, and the requested layout") {
  const OpCase c = square_case(0, 2);
  const Sample s = sample({{3, 4}});
  for (const Layout layout : kAllLayouts) {
    const Tensor wide = make_inputs(c, s, DType::f64, layout)[0], narrow = make_inputs(c, s, DType::f32, layout)[0];
    CHECK(wide.sizes() == Shape{3, 4});
    CHECK(compare(narrow, wide.to_vector<double>(), {}) == "");
    CHECK(wide.is_contiguous() == (layout == Layout::contiguous));
  }
}
