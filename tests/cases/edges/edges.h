#pragma once
// Helpers of the cases at the edges of the formulas' domains: signed zeros, NaN next to numbers, values whose squares
// underflow, integers beyond the range in which doubles are exact, counts beyond the range of a type, operands of
// several types. Gradients are outputs there, because finite differences do not exist at such points.

#include "cases/pointwise.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>

#include <limits>

namespace levin::test {

using EdgeValues = std::vector<double>;

inline constexpr double kEdgeInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kEdgeNan = std::numeric_limits<double>::quiet_NaN();

/// Makes a function that returns the gradients of f for an incoming gradient of ones: one per floating input, undefined
/// if f does not depend on it.
inline TensorFunction slopes_of(TensorFunction f) {
  return [f = std::move(f)](const Tensors& inputs) -> Tensors {
    enable_grad guard;
    Tensors x, wanted;
    for (const Tensor& input : inputs) {
      x.push_back(input.detach());
      if (input.is_floating()) wanted.push_back(x.back().requires_grad_());
    }
    const Tensor y = f(x)[0];
    return grad(Tensors{y}, wanted, {.allow_unused = true}, Tensors{ones_like(y)});
  };
}

inline OpCase edge_case(std::string name, TensorFunction op, TensorFunction reference, std::vector<Sample> samples,
                        std::vector<DType> dtypes = kFloatTypes) {
  OpCase c{.name = std::move(name)};
  c.op = std::move(op);
  c.reference = std::move(reference);
  c.samples = std::move(samples);
  c.dtypes = std::move(dtypes);
  c.outputs = {Output::any};
  c.differentiable = false;
  return c;
}

inline InputSpec values_of(const Shape& sizes, EdgeValues values, std::optional<DType> dtype = {}) {
  return {.sizes = sizes, .values = cycle(std::move(values)), .dtype = dtype};
}

}  // namespace levin::test
