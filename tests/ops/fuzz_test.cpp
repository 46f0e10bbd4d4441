// The random tests find planted faults and reduce them.

#include "cases/cases.h"
#include "fuzz/cases.h"
#include "fuzz/processes.h"
#include "fuzz/reduce.h"
#include "support/small_cases.h"

#include <levin/autograd/ops.h>
#include <levin/autograd/record.h>

#include <doctest/doctest.h>

#include <csignal>
#include <optional>

using namespace levin;
using namespace levin::test;

namespace {

/// Computes x^2 with a fault.
using Fault = Tensor (*)(const Tensor& x);

OpCase square_with(Fault fault) {
  OpCase c{.name = "planted"};
  c.op = [fault](const Tensors& x) -> Tensors { return {fault(x[0])}; };
  c.reference = pointwise([](double x) { return x * x; });
  c.samples = {sample({{2}})};
  c.draw = [](Draw& d) { return sample({d.shape()}); };
  c.dtypes = {DType::f32, DType::f64};
  c.pointwise = true;
  return c;
}

struct Found {
  Draw::Choices choices{};
  std::string wrong{}, code{};
};

/// Returns the first failure of 2000 tests, reduced. Under sanitizers 300 of one operation do, since these are tests of
/// the method.
std::optional<Found> found(const OpCase& c, const std::string& family = "single") {
  fuzz::Suite suite{.cases = {c}, .family = family};
  if (family == "graphs") suite.cases = all_cases(), suite.cases.push_back(c);
  const std::uint64_t count = small_cases() && family == "single" ? 300 : 2000;
  for (std::uint64_t number = 0; number < count; ++number) {
    Draw d(1, number);
    if (fuzz::run_case(d, suite).empty()) continue;
    Found f;
    f.choices = fuzz::reduced(d.choices(), [&](const Draw::Choices& choices) {
      Draw smaller(choices);
      return !fuzz::run_case(smaller, suite).empty();
    });
    Draw smallest(f.choices);
    f.wrong = fuzz::run_case(smallest, suite, [&](const std::string& code) { f.code += code; });
    return f;
  }
  return std::nullopt;
}

/// A square with the given backward.
Tensor recorded_square(const Tensor& x, BackwardFn backward) {
  Tensor y;
  {
    no_grad guard;
    y = square(x);
  }
  if (Context* c = record("planted", y, {x}, backward)) c->save(x);
  return y;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("random tests pass a correct operation") {
  CHECK(!found(square_with([](const Tensor& x) { return square(x); })));
}

TEST_CASE("random tests find a wrong value of strided inputs and reduce the input") {
  const auto f = found(
      square_with([](const Tensor& x) { return x.is_contiguous() || x.numel() < 4 ? square(x) : add(square(x), 1); }));
  REQUIRE(f);
  CHECK(holds(f->wrong, "output 0"));
  CHECK(holds(f->code, "as_strided"));
  CHECK(f->code.size() < 400);
  CHECK(f->choices.size() < 30);
}

TEST_CASE("random tests find a lost NaN") {
  const auto f = found(square_with([](const Tensor& x) { return where(isnan(x), zeros_like(x), square(x)); }));
  REQUIRE(f);
  CHECK(holds(f->wrong, "expected nan"));
}

TEST_CASE("random tests find wrong first gradients") {
  const auto f = found(square_with([](const Tensor& x) {
    return recorded_square(x, [](Context& k, const Tensor& g) -> Grads { return {mul(mul(g, k.saved(0)), 2.001)}; });
  }));
  REQUIRE(f);
  CHECK(holds(f->wrong, "the slope along a direction"));
}

TEST_CASE("random tests find a gradient that assumes a contiguous incoming gradient") {
  const auto f = found(square_with([](const Tensor& x) {
    return recorded_square(x, [](Context& k, const Tensor& g) -> Grads {
      const Tensor read =
          g.is_contiguous() ? g : alias(g, g.sizes(), contiguous_strides(g.sizes()), g.storage_offset());
      return {mul(mul(read, k.saved(0)), 2)};
    });
  }));
  REQUIRE(f);
  CHECK(holds(f->wrong, "gradient 0"));
}

TEST_CASE("random tests find wrong second gradients") {
  const auto f = found(square_with([](const Tensor& x) {
    return recorded_square(x,
                           [](Context& k, const Tensor& g) -> Grads { return {mul(mul(g, k.saved(0).detach()), 2)}; });
  }));
  REQUIRE(f);
  CHECK(holds(f->wrong, "second gradient"));
}

TEST_CASE("random tests find a fault that appears in a graph, and reduce the graph") {
  const auto f =
      found(square_with([](const Tensor& x) { return grad_fn(x) && x.numel() > 2 ? add(square(x), 0.5) : square(x); }),
            "graphs");
  REQUIRE(f);
  CHECK(holds(f->code, "planted"));
  CHECK_MESSAGE(!holds(f->code, "const Tensor y3"), f->code);
}

namespace {

/// Adds x^2 to `large` and takes that away again, so that its errors exceed the error model. Throws where a
/// factor of 1 becomes larger, as it does in half of the runs with noise. `error` is added in float32.
OpCase square_within_a_domain(double large, double error) {
  OpCase c = square_with(nullptr);
  c.reference = nullptr;
  c.op = [large, error](const Tensors& x) -> Tensors {
    if (ceil(mul(ones({1}, {.dtype = x[0].dtype()}), 1.0)).item<double>() > 1) throw ValueError("out of the domain");
    const Tensor y = add(square(x[0]), x[0].dtype() == DType::f32 ? error : 0);
    return {sub(add(y, large), large)};
  };
  return c;
}

}  // namespace

TEST_CASE("runs with noise that leave the domain of an operation are left out") {
  CHECK(!found(square_within_a_domain(1e5, 0)));
  CHECK(!found(square_within_a_domain(1e8, 0)));  // finite differences in double need runs with noise too
  CHECK(found(square_within_a_domain(1e5, 10)));
}

TEST_CASE("an element among equal ones is one of the slopes where differences along a direction show no kink") {
  OpCase c = square_with(nullptr);
  c.reference = nullptr;
  c.op = [](const Tensors& x) -> Tensors { return {quantile(x[0], 0.5)}; };
  c.draw = [](Draw& d) { return sample({{2 * d.between(1, 4) + 1}}, cycle({0})); };
  c.pointwise = false;
  CHECK(!found(c));
}

TEST_CASE("a test that crashes is a failure, and the tests after it still run") {
  const auto test = [](std::int64_t number) -> std::string {
    if (number == 7) std::raise(SIGKILL);
    return number == 11 ? "wrong" : "";
  };
  std::int64_t most = 0;
  const auto failures = fuzz::run_many(0, 20, 2, test, [&](std::int64_t done, std::size_t) { most = done; });
  REQUIRE(failures.size() == 2);
  CHECK(failures[0].number == 7);
  CHECK(holds(failures[0].wrong, "died"));
  CHECK(failures[1].number == 11);
  CHECK(failures[1].wrong == "wrong");
  CHECK(most == 20);
}
