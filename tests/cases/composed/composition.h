#pragma once
// Cases of compositions: each row is a call with the shapes of its inputs, and PyTorch's expression, whose stored
// values are the reference.

#include "support/ops/op_case.h"

#include <levin/autograd/ops.h>

#include <string>
#include <utility>
#include <vector>

namespace levin::test {

inline Tensors listed(const Tensor& y) { return {y}; }
inline Tensors listed(const Tensors& y) { return y; }
inline Tensors listed(const ValuesIndices& y) { return {y.values, y.indices}; }

/// One call of an operation: `op` and `code` come from LEVIN_CALL or LEVIN_DRAWN.
struct Call {
  TensorFunction op;
  std::string code;
};

/// Reads an expression of x0, x1, x2 and x3 as a function, and as the code that a failure shows.
#define LEVIN_CALL(...)                                                     \
  ::levin::test::Call {                                                     \
    [](const ::levin::test::Tensors& x) -> ::levin::test::Tensors {         \
      [[maybe_unused]] const ::levin::Tensor& x0 = x[0];                    \
      [[maybe_unused]] const ::levin::Tensor& x1 = x[x.size() > 1 ? 1 : 0]; \
      [[maybe_unused]] const ::levin::Tensor& x2 = x[x.size() > 2 ? 2 : 0]; \
      [[maybe_unused]] const ::levin::Tensor& x3 = x[x.size() > 3 ? 3 : 0]; \
      return ::levin::test::listed(__VA_ARGS__);                            \
    },                                                                      \
        #__VA_ARGS__                                                        \
  }

/// The same with the arguments' values at this place.
#define LEVIN_DRAWN(...)                                                    \
  ::levin::test::Call {                                                     \
    [=](const ::levin::test::Tensors& in) -> ::levin::test::Tensors {        \
      [[maybe_unused]] const ::levin::Tensor& x0 = in[0];                     \
      [[maybe_unused]] const ::levin::Tensor& x1 = in[in.size() > 1 ? 1 : 0]; \
      [[maybe_unused]] const ::levin::Tensor& x2 = in[in.size() > 2 ? 2 : 0]; \
      return ::levin::test::listed(__VA_ARGS__);                            \
    },                                                                      \
        #__VA_ARGS__                                                        \
  }

inline InputSpec input(const Shape& sizes, Values values = uniform()) {
  return {.sizes = sizes, .values = std::move(values)};
}
/// An input that is not differentiated: weights, targets.
inline InputSpec constant(const Shape& sizes, Values values = uniform()) {
  return {.sizes = sizes, .values = std::move(values), .differentiable = false};
}

inline Sample call(std::string torch, std::vector<InputSpec> inputs, Call c, int64_t terms = 1) {
  Sample s{.inputs = std::move(inputs)};
  s.terms = terms;
  s.op = std::move(c.op);
  s.torch = std::move(torch);
  s.code = std::move(c.code);
  return s;
}

/// Random tests keep the sizes of this call, since its arguments or values depend on them.
inline Sample fixed(Sample s) {
  s.fixed = true;
  return s;
}
/// Random tests draw these values only: the operation takes no others.
inline InputSpec own(InputSpec i) {
  i.own = true;
  return i;
}

/// Returns a function that draws one of the samples and gives each of its sizes above 1 another value, the same for
/// equal sizes.
std::function<Sample(Draw&)> resized(std::vector<Sample> samples);

/// Random tests keep the sizes of all samples, or draw only the case's values.
inline OpCase with_fixed_sizes(OpCase c) {
  for (Sample& s : c.samples) s.fixed = true;
  c.draw = resized(c.samples);
  return c;
}
inline OpCase with_own_values(OpCase c) {
  for (Sample& s : c.samples)
    for (InputSpec& i : s.inputs) i.own = true;
  c.draw = resized(c.samples);
  return c;
}

/// Draws a sample from scratch.
using Draws = std::vector<std::function<Sample(Draw&)>>;
/// Lets random tests also draw from these, half of the time.
inline OpCase with_draws(OpCase c, Draws draws) {
  c.draw = [draw = std::move(c.draw), draws = std::move(draws)](Draw& d) {
    return d.chance(50) ? d.of(draws)(d) : draw(d);
  };
  return c;
}

/// The case of these calls, in float64 and float32.
inline OpCase composition(std::string name, std::vector<Sample> samples) {
  OpCase c{.name = std::move(name)};
  c.op = samples[0].op;
  c.torch = samples[0].torch;
  c.samples = std::move(samples);
  c.draw = resized(c.samples);
  c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};
  c.outputs = {Output::any};
  c.tolerance = {.ulps = 4, .scale = 1};
  c.grad_tolerance = {.ulps = 32, .scale = 4};
  return c;
}

inline OpCase with_errors(OpCase c, std::vector<ErrorSample> errors) {
  c.errors = std::move(errors);
  return c;
}
/// For results without a gradient: counts, positions, conditions.
inline OpCase without_gradient(OpCase c) {
  c.differentiable = false;
  return c;
}
/// For sums of products, whose error grows with the terms.
inline OpCase of_products(OpCase c) {
  c.tolerance = {.ulps = 4, .scale = 8};
  c.grad_tolerance = {.ulps = 32, .scale = 32};
  return c;
}
inline OpCase once_differentiable(OpCase c) {
  c.twice = false;
  return c;
}
inline OpCase in_types(OpCase c, std::vector<DType> dtypes) {
  c.dtypes = std::move(dtypes);
  return c;
}

}  // namespace levin::test
