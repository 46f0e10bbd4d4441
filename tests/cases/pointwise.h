#pragma once
// Helpers for the cases of elementwise operations.

#include "support/ops/op_case.h"

#include <levin/autograd/ops/elementwise.h>

#include <string>

namespace levin::test {

inline constexpr int64_t kLargeSize = 100'003;     // a prime number that spans several tasks
inline constexpr int64_t kTaskSize = 32'768;       // elements of a parallel task
inline constexpr int64_t kBenchSize = 4 << 20;

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

/// Makes the case of a function of one tensor; the caller may set its other fields.
inline OpCase unary_case(std::string name, Unary f, double (*reference)(double), const Values& values,
                         double ulps = 4) {
  OpCase c;
  c.name = name;
  c.op = [f](const Tensors& x) -> Tensors { return {f(x[0])}; };
  c.reference = pointwise(std::function<double(double)>(reference));
  c.samples = unary_samples(values);
  c.pointwise = true;
  c.draw = [values](Draw& d) { return sample({d.shape()}, values); };
  c.large = {sample({{kLargeSize}}, values)};
  c.limits = {sample({{kTaskSize}}, values), sample({{kTaskSize + 1}}, values)};
  c.dtypes = kFloatTypes;
  c.tolerance = {.ulps = ulps};
  c.torch = "torch." + name + "(x0)";
  c.bench = {sample({{kBenchSize}}, values)};
  return c;
}

/// Makes a sample of two inputs, one of which may broadcast to the other.
inline Sample pair_sample(Draw& d, const Values& a, const Values& b) {
  const Shape whole = d.shape(), part = d.broadcasting_to(whole);
  const bool swapped = d.chance(30);
  return {.inputs = {{.sizes = swapped ? part : whole, .values = a}, {.sizes = swapped ? whole : part, .values = b}}};
}

inline OpCase binary_case(std::string name, Binary f, double (*reference)(double, double), const Values& a,
                          const Values& b, double ulps = 2) {
  OpCase c;
  c.name = name;
  c.op = [f](const Tensors& x) -> Tensors { return {f(x[0], x[1])}; };
  c.reference = pointwise(std::function<double(double, double)>(reference));
  c.samples = binary_samples(a, b);
  c.pointwise = true;
  c.draw = [a, b](Draw& d) { return pair_sample(d, a, b); };
  const auto line = [&](int64_t n) -> Sample {
    return {.inputs = {{.sizes = {n}, .values = a}, {.sizes = {n}, .values = b}}};
  };
  c.large = {line(kLargeSize)};
  c.limits = {line(kTaskSize), line(kTaskSize + 1)};
  c.dtypes = kNumericTypes;
  c.tolerance = {.ulps = ulps};
  c.torch = "torch." + name + "(x0, x1)";
  c.bench = {{.inputs = {{.sizes = {kBenchSize}, .values = a}, {.sizes = {kBenchSize}, .values = b}}}};
  return c;
}

inline OpCase with_types(OpCase c, std::vector<DType> dtypes, Output output = Output::same) {
  c.dtypes = std::move(dtypes);
  c.outputs = {output};
  return c;
}

inline OpCase with_torch(OpCase c, std::string expression) {
  c.torch = std::move(expression);
  return c;
}

/// Marks a bool result, which is not differentiable.
inline OpCase as_test(OpCase c) {
  c.outputs = {Output::boolean};
  c.differentiable = false;
  c.dtypes = kAllTypes;
  return c;
}

/// Marks a step function, whose gradient is zero.
inline OpCase as_step(OpCase c) {
  c.zero_gradient = true;
  return c;
}

/// Returns `value` in small samples, which must have a nonzero gradient, else `values`.
inline Values alive(Values values, double value) {
  return [values = std::move(values), value](int64_t i, int64_t n, Generator& g) {
    return n <= 3 ? value : values(i, n, g);
  };
}

/// Returns `values` plus `by`.
inline Values shifted(Values values, double by) {
  return [values = std::move(values), by](int64_t i, int64_t n, Generator& g) { return values(i, n, g) + by; };
}

}  // namespace levin::test
