#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace levin::test {

namespace {

/// The sizes of a scan as (outer, n, inner).
struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
  Lines(const Shape& sizes, int64_t axis) {
    if (sizes.empty()) return;
    const int along = wrap_axis(axis, sizes.size(), "reference");
    for (int d = 0; d < along; ++d) outer *= sizes[d];
    n = sizes[along];
    for (int d = along + 1; d < sizes.size(); ++d) inner *= sizes[d];
  }
  /// Calls f(element, element before it in its line or -1) in the order of each line.
  template <class F>
  void each(F&& f) const {
    for (int64_t i = 0; i < outer * n * inner; ++i) f(i, i / inner % n > 0 ? i - inner : -1);
  }
};

using Scan = Tensor (*)(const Tensor&, int64_t);

Sample scan_sample(const std::string& name, const Shape& sizes, int64_t axis, const Values& values) {
  Sample s = sample({sizes}, values);
  s.label = fmt::format("axis {}", axis);
  s.code = fmt::format("{}(x0, {})", name, axis);
  s.terms = Lines(sizes, axis).n;
  return s;
}

/// A scan that combines each element with the result before it.
OpCase cumulative_case(const std::string& name, Scan f, double (*combine)(double, double), const Values& values,
                       bool stored) {
  OpCase c{.name = name};
  const auto scan = [=](const Shape& sizes, int64_t axis) {
    Sample s = scan_sample(name, sizes, axis, values);
    s.terms = std::max<int64_t>(1, s.terms);
    s.op = [=](const Tensors& x) -> Tensors { return {f(x[0], axis)}; };
    s.reference = [=](const Tensors& x) -> Tensors {
      std::vector<double> v = x[0].to_vector<double>();
      Lines(sizes, axis).each([&](int64_t i, int64_t before) {
        if (before < 0) return;
        double& own = v[static_cast<std::size_t>(i)];
        own = combine(v[static_cast<std::size_t>(before)], own);
      });
      return {from_data(v, sizes)};
    };
    s.torch = stored ? fmt::format("torch.{}(x0, {})", name, axis) : "-";
    return s;
  };
  c.samples = {scan({}, 0),      scan({0}, 0),     scan({1}, 0),       scan({31}, 0),
               scan({7, 13}, 0), scan({7, 13}, 1), scan({2, 3, 5}, 1), scan({4, 0, 3}, 2)};
  c.large = {scan({300, 517}, 0), scan({300, 517}, 1)};
  c.limits = {scan({128, 256}, 1), scan({129, 256}, 1)};  // a parallel task has 32,768 elements
  c.draw = [scan](Draw& d) {
    const Shape sizes = d.shape();
    return scan(sizes, d.axis(sizes));
  };
  c.op = c.samples[0].op;
  c.torch = stored ? c.samples[0].torch : "";
  c.dtypes = kAllTypes;
  c.outputs = {Output::accumulated};
  c.tolerance = {.ulps = 1, .scale = 0.25};
  c.errors = {{"[" + name + "]", [f] { f(ones({3}), 1); }}};
  return c;
}

OpCase extremum_case(const std::string& name, ValuesIndices (*f)(const Tensor&, int64_t), bool largest) {
  OpCase c{.name = name};
  const auto scan = [=](const Shape& sizes, int64_t axis) {
    Sample s = scan_sample(name, sizes, axis, distinct());
    s.grad_terms = std::max<int64_t>(1, std::exchange(s.terms, 1));
    s.op = [=](const Tensors& x) -> Tensors {
      const ValuesIndices y = f(x[0], axis);
      return {y.values, y.indices};
    };
    s.reference = [=](const Tensors& x) -> Tensors {
      std::vector<double> v = x[0].to_vector<double>();
      std::vector<int64_t> at(v.size(), 0);
      const Lines lines(sizes, axis);
      lines.each([&](int64_t i, int64_t before) {
        if (before < 0) return;
        double& own = v[static_cast<std::size_t>(i)];
        const double best = v[static_cast<std::size_t>(before)];
        const bool follows = std::isnan(own) || (largest ? own >= best : own <= best);
        at[static_cast<std::size_t>(i)] = follows ? i / lines.inner % lines.n : at[static_cast<std::size_t>(before)];
        if (!follows) own = best;
      });
      return {from_data(v, sizes), from_data(at, sizes)};
    };
    s.torch = "-";
    return s;
  };
  c.samples = {scan({}, 0),      scan({0}, 0),     scan({1}, 0),       scan({31}, 0),
               scan({7, 13}, 0), scan({7, 13}, 1), scan({2, 3, 5}, 1), scan({4, 0, 3}, 2)};
  c.large = {scan({300, 517}, 0), scan({300, 517}, 1)};
  c.limits = {scan({128, 256}, 1), scan({129, 256}, 1)};  // a parallel task has 32,768 elements
  c.draw = [scan](Draw& d) {
    const Shape sizes = d.shape();
    return scan(sizes, d.axis(sizes));
  };
  c.op = c.samples[0].op;
  c.dtypes = kAllTypes;
  c.outputs = {Output::same, Output::index};
  c.tolerance = {.ulps = 0};
  c.errors = {{"[" + name + "]", [f] { f(ones({3}), 1); }}};
  return c;
}

/// The same at ties and NaN, where there is no slope.
OpCase of_ties(OpCase c) {
  c.name += "_of_ties";
  for (Sample& s : c.samples) s.inputs[0].values = cycle({2, 1, 2, NAN, 1, 1, 3, 2, 2, 0, 0});
  c.large = c.limits = {};
  c.differentiable = false;
  c.dtypes = kFloatTypes;
  return c;
}

}  // namespace

std::vector<OpCase> scan_cases() {
  const OpCase largest = extremum_case("cummax", cummax, true), smallest = extremum_case("cummin", cummin, false);
  return {
      cumulative_case(
          "cumsum", cumsum, [](double a, double b) { return a + b; }, uniform(), true),
      // Factors whose product stays near 1, with two signs.
      cumulative_case(
          "cumprod", cumprod, [](double a, double b) { return a * b; },
          [](int64_t i, int64_t, Generator& g) { return (i % 3 == 1 ? -1 : 1) * (0.9 + 0.2 * g.uniform()); }, false),
      largest, smallest, of_ties(largest), of_ties(smallest)};
}

}  // namespace levin::test
