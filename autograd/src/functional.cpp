#include <levin/autograd/functional.h>

#include "errors.h"
#include "ops/values.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/reduce.h>

namespace levin {

namespace {

/// Returns an input of f: a new leaf, or x itself in a graph that is differentiated again.
Tensor as_input(const Tensor& x, bool create_graph) {
  return create_graph && x.requires_grad() ? view(x, x.sizes()) : x.detach().requires_grad_();
}

Tensor or_zeros(const Tensor& gradient, const Tensor& x) { return gradient.defined() ? gradient : zeros_like(x); }

void require_history(const char* op, const Tensor& y) {
  if (!y.requires_grad())
    fail<GradError>(
        "[{}] the result of f does not require grad: it does not depend on its input by differentiable operations.",
        op);
}

void require_one_element(const char* op, const Tensor& y) {
  if (y.numel() != 1) fail<ShapeError>("[{}] the result of f is {}, one element is needed.", op, y.sizes());
}

/// Returns the Jacobian of y with respect to each input.
std::vector<Tensor> rows_of(const char* op, const Tensor& y, const std::vector<Tensor>& inputs, bool create_graph) {
  require_history(op, y);
  std::vector<std::vector<Tensor>> rows(inputs.size());
  const Tensor flat = reshape(y, {y.numel()});
  for (int64_t i = 0; i < y.numel(); ++i) {
    const Tensor element = select(flat, 0, i);
    const std::vector<Tensor> gradients = grad(
        std::span(&element, 1), inputs, {.retain_graph = true, .create_graph = create_graph, .allow_unused = true});
    for (std::size_t j = 0; j < inputs.size(); ++j) rows[j].push_back(or_zeros(gradients[j], inputs[j]));
  }
  std::vector<Tensor> result;
  for (std::size_t j = 0; j < inputs.size(); ++j) {
    const Shape sizes = ops::joined(y.sizes(), inputs[j].sizes());
    result.push_back(rows[j].empty() ? zeros(sizes, like(inputs[j])) : reshape(stack(rows[j]), sizes));
  }
  return result;
}

}  // namespace

Tensor jacobian(const TensorMap& f, const Tensor& x, const DerivativeOptions& options) {
  enable_grad guard;
  const Tensor input = as_input(x, options.create_graph);
  return rows_of("jacobian", f(input), {input}, options.create_graph)[0];
}

std::vector<std::vector<Tensor>> jacobian(const TensorListMap& f, const std::vector<Tensor>& inputs,
                                          const DerivativeOptions& options) {
  enable_grad guard;
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) leaves.push_back(as_input(x, options.create_graph));
  std::vector<std::vector<Tensor>> result;
  for (const Tensor& y : f(leaves)) result.push_back(rows_of("jacobian", y, leaves, options.create_graph));
  return result;
}

Tensor hessian(const TensorMap& f, const Tensor& x, const DerivativeOptions& options) {
  enable_grad guard;
  const Tensor input = as_input(x, options.create_graph), y = f(input);
  require_one_element("hessian", y);
  require_history("hessian", y);
  const Tensor gradient = grad({y}, {input}, {.create_graph = true})[0];
  if (!gradient.requires_grad()) return zeros(ops::joined(x.sizes(), x.sizes()), like(x));  // f is linear
  return rows_of("hessian", gradient, {input}, options.create_graph)[0];
}

ValueAndProduct vjp(const TensorMap& f, const Tensor& x, const Tensor& v, const DerivativeOptions& options) {
  enable_grad guard;
  const Tensor input = as_input(x, options.create_graph), y = f(input);
  require_history("vjp", y);
  const Tensor product = grad({y}, {input}, {.create_graph = options.create_graph, .allow_unused = true}, {v})[0];
  return {options.create_graph ? y : y.detach(), or_zeros(product, input)};
}

ValueAndProduct jvp(const TensorMap& f, const Tensor& x, const Tensor& v, const DerivativeOptions& options) {
  enable_grad guard;
  const Tensor input = as_input(x, options.create_graph), y = f(input);
  if (v.sizes() != x.sizes()) fail<ShapeError>("[jvp] v is {}, and x is {}.", v.sizes(), x.sizes());
  require_history("jvp", y);
  // u^T J is linear in u; its derivative by u in the direction v is J v.
  const Tensor u = zeros_like(y.detach()).requires_grad_();
  const Tensor row = grad({y}, {input}, {.create_graph = true, .allow_unused = true}, {u})[0];
  const bool depends = row.defined() && row.requires_grad();
  const Tensor product =
      depends ? grad({row}, {u}, {.create_graph = options.create_graph, .allow_unused = true}, {v})[0] : Tensor();
  return {options.create_graph ? y : y.detach(), or_zeros(product, u)};
}

ValueAndProduct hvp(const TensorMap& f, const Tensor& x, const Tensor& v, const DerivativeOptions& options) {
  enable_grad guard;
  const Tensor input = as_input(x, options.create_graph), y = f(input);
  require_one_element("hvp", y);
  require_history("hvp", y);
  const Tensor gradient = grad({y}, {input}, {.create_graph = true, .allow_unused = true})[0];
  const bool depends = gradient.defined() && gradient.requires_grad();
  const Tensor product =
      depends ? grad({gradient}, {input}, {.create_graph = options.create_graph, .allow_unused = true}, {v})[0]
              : Tensor();
  return {options.create_graph ? y : y.detach(), or_zeros(product, input)};
}

}  // namespace levin
