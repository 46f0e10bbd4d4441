#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace levin::test {

namespace {

/// Computes (log-)softmax along an axis in double.
Tensor softmax_reference(const Tensor& x, int64_t axis, bool logarithm) {
  const int along = wrap_axis(axis, x.dim(), "reference");
  const int64_t n = x.dim() == 0 ? 1 : x.sizes()[along];
  int64_t inner = 1;
  for (int d = along + 1; d < x.dim(); ++d) inner *= x.sizes()[d];
  const std::vector<double> v = x.to_vector<double>();
  std::vector<double> y(v.size());
  for (int64_t line = 0; line < (n == 0 ? 0 : x.numel() / n); ++line) {
    const int64_t first = line / inner * n * inner + line % inner;
    const auto at = [&](int64_t i) { return static_cast<std::size_t>(first + i * inner); };
    double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (int64_t i = 0; i < n; ++i) top = std::max(top, v[at(i)]);
    for (int64_t i = 0; i < n; ++i) sum += std::exp(v[at(i)] - top);
    for (int64_t i = 0; i < n; ++i)
      y[at(i)] = logarithm ? v[at(i)] - top - std::log(sum) : std::exp(v[at(i)] - top) / sum;
  }
  return from_data(y, x.sizes());
}

Sample line_sample(bool logarithm, const Shape& sizes, int64_t axis, const Values& values = uniform(-4, 4)) {
  Sample s = sample({sizes}, values);
  // The sum of the exponentials has a relative error. The gradient of log_softmax sums the incoming gradients.
  const int64_t n = sizes.empty() ? 1 : std::max<int64_t>(1, sizes[wrap_axis(axis, sizes.size(), "sample")]);
  s.grad_terms = logarithm ? n : 1;
  s.label = fmt::format("axis {}", axis);
  s.code = fmt::format("{}(x0, {})", logarithm ? "log_softmax" : "softmax", axis);
  s.op = [=](const Tensors& x) -> Tensors { return {logarithm ? log_softmax(x[0], axis) : softmax(x[0], axis)}; };
  s.reference = [=](const Tensors& x) -> Tensors { return {softmax_reference(x[0], axis, logarithm)}; };
  s.torch = fmt::format("torch.{}(x0, {})", logarithm ? "log_softmax" : "softmax", axis);
  return s;
}

OpCase lines_case(bool logarithm) {
  OpCase c{.name = logarithm ? "log_softmax" : "softmax"};
  const auto line = [=](const Shape& sizes, int64_t axis) { return line_sample(logarithm, sizes, axis); };
  c.samples = {line({31}, 0),         line({33}, -1),       line({5, 7}, 1),      line({5, 7}, 0),   line({3, 17}, 1),
               line({2, 3, 5}, 1),    line({2, 3, 5}, 0),   line({4, 67}, 0),     line({3, 130}, 1), line({4, 0, 3}, 2),
               line({4, 0, 3}, 1),    line_sample(logarithm, {6, 5}, 1, uniform(-90, 90)),
               line_sample(logarithm, {6, 5}, 1, cycle({1e4, 1e4 + 1, -1e4, 0, 3}))};
  c.large = {line({600, 257}, 1), line({60, 17, 130}, 1)};
  c.draw = [=](Draw& d) {
    const Shape sizes = d.shape(1);
    return line(sizes, d.axis(sizes));
  };
  // A parallel task has 16,384 elements: exactly as many, one row more, and rows that are longer.
  c.limits = {line({64, 256}, 1), line({65, 256}, 1), line({2, 16385}, 1), line({128, 129}, 0)};
  c.op = c.samples[0].op;
  c.torch = c.samples[0].torch;
  c.dtypes = kFloatTypes;
  c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};  // equal elements have no gradient
  c.tolerance = {.ulps = 6, .scale = logarithm ? 1.0 : 0.1};
  c.grad_tolerance = {.ulps = 16, .scale = 2};
  c.bench = {line({4096, 1024}, 1), line({16, 64, 1024}, 1), line({4, 10}, 1)};
  c.work = [](const Tensors& in, const Tensors&) -> Work {
    const double n = static_cast<double>(in[0].numel());
    return {2.0 * n * static_cast<double>(size_of(in[0].dtype())), 25.0 * n};
  };
  const char* tag = logarithm ? "[log_softmax]" : "[softmax]";
  const auto call = [=](const Tensor& x, int64_t axis) { logarithm ? log_softmax(x, axis) : softmax(x, axis); };
  c.errors = {{tag, [=] { call(ones({2, 3}), 2); }},
              {"needs floating-point values, x is int64", [=] { call(ones({2}, {.dtype = kInt64}), 0); }}};
  return c;
}

/// Along an axis of size 1 the result is constant.
OpCase single_case(bool logarithm) {
  OpCase c{.name = logarithm ? "log_softmax_of_one" : "softmax_of_one"};
  c.samples = {line_sample(logarithm, {}, 0), line_sample(logarithm, {1}, 0), line_sample(logarithm, {5, 1}, 1)};
  c.op = c.samples[0].op;
  c.torch = c.samples[0].torch;
  c.zero_gradient = true;
  return c;
}

}  // namespace

std::vector<OpCase> softmax_cases() {
  return {lines_case(false), lines_case(true), single_case(false), single_case(true)};
}

}  // namespace levin::test
