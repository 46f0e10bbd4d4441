#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::test {

namespace {

OpCase cumsum_case() {
  OpCase c{.name = "cumsum"};
  const auto scan = [](const Shape& sizes, int64_t axis) {
    Sample s = sample({sizes}, uniform());
    s.label = fmt::format("axis {}", axis);
    s.code = fmt::format("cumsum(x0, {})", axis);
    s.terms = sizes.empty() ? 1 : std::max<int64_t>(1, sizes[wrap_axis(axis, sizes.size(), "sample")]);
    s.op = [=](const Tensors& x) -> Tensors { return {cumsum(x[0], axis)}; };
    s.reference = [=](const Tensors& x) -> Tensors {
      std::vector<double> v = x[0].to_vector<double>();
      if (sizes.empty()) return {from_data(v, sizes)};
      int64_t inner = 1;
      const int along = wrap_axis(axis, sizes.size(), "reference");
      for (int d = along + 1; d < sizes.size(); ++d) inner *= sizes[d];
      for (int64_t i = 0; i < sizes.numel(); ++i)
        if (i / inner % sizes[along] > 0) v[static_cast<std::size_t>(i)] += v[static_cast<std::size_t>(i - inner)];
      return {from_data(v, sizes)};
    };
    s.torch = fmt::format("torch.cumsum(x0, {})", axis);
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
  c.torch = c.samples[0].torch;
  c.dtypes = kAllTypes;
  c.outputs = {Output::accumulated};
  c.tolerance = {.ulps = 1, .scale = 0.25};
  c.errors = {{"[cumsum]", [] { cumsum(ones({3}), 1); }}};
  return c;
}

}  // namespace

std::vector<OpCase> scan_cases() { return {cumsum_case()}; }

}  // namespace levin::test
