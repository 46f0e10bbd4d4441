#pragma once
// Derivatives of functions: Jacobians, Hessians and their products with vectors; functions over a batch.

#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/view.h>
#include <levin/core/tensor.h>

#include <functional>
#include <utility>
#include <vector>

namespace levin {

/// A function of one tensor, or of several with several results.
using TensorMap = std::function<Tensor(const Tensor&)>;
using TensorListMap = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Arguments of the functions below.
struct DerivativeOptions {
  bool create_graph = false;  ///< the result can be differentiated again
};

/// Returns d f(x)[i...] / d x[j...], of the sizes of f(x) followed by those of x, one backward pass for each element of
/// f(x). An input that f does not use has zeros. Throws GradError if f(x) does not require grad.
Tensor jacobian(const TensorMap& f, const Tensor& x, const DerivativeOptions& options = {});
/// Returns the Jacobian of output i with respect to input j at [i][j].
std::vector<std::vector<Tensor>> jacobian(const TensorListMap& f, const std::vector<Tensor>& inputs,
                                          const DerivativeOptions& options = {});
/// Returns the second derivatives of f, whose result has one element (else ShapeError): the sizes of x twice.
Tensor hessian(const TensorMap& f, const Tensor& x, const DerivativeOptions& options = {});

/// A function's value and the product that vjp, jvp and hvp compute.
struct ValueAndProduct {
  Tensor value;    ///< f(x)
  Tensor product;  ///< v^T J of vjp, J v of jvp, and the Hessian times v of hvp
};
/// v^T J with the Jacobian J of f at x, of x's sizes, with v of the sizes of f(x).
ValueAndProduct vjp(const TensorMap& f, const Tensor& x, const Tensor& v, const DerivativeOptions& options = {});
/// J v, of the sizes of f(x), with v of x's sizes; computed by two backward passes.
ValueAndProduct jvp(const TensorMap& f, const Tensor& x, const Tensor& v, const DerivativeOptions& options = {});
/// The Hessian of f times v, of x's sizes; f(x) has one element.
ValueAndProduct hvp(const TensorMap& f, const Tensor& x, const Tensor& v, const DerivativeOptions& options = {});

/// Returns a function that calls f for each slice of its arguments along in_axis and stacks the results along out_axis.
/// f runs once for each slice, so this saves writing, not time.
template <class F>
auto vmap(F f, int64_t in_axis = 0, int64_t out_axis = 0) {
  return [=](const auto&... arguments) {
    const auto first = [](const auto& x, const auto&...) -> const Tensor& { return x; };
    std::vector<Tensor> results;
    for (int64_t i = 0, n = first(arguments...).size(in_axis); i < n; ++i)
      results.push_back(f(select(arguments, in_axis, i)...));
    return stack(results, out_axis);
  };
}

}  // namespace levin
