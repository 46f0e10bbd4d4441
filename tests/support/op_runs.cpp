#include "support/op_runs.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/ops/creation.h>

#include <algorithm>

namespace levin::test {

std::string describe(const OpCase& c, const Sample& s, DType dtype, Layout layout) {
  std::vector<std::string> shapes;
  for (const InputSpec& i : s.inputs) shapes.push_back(to_string(i.sizes));
  return fmt::format("{}{}{} on {} {} {}", c.name, s.label.empty() ? "" : ", ", s.label, fmt::join(shapes, " "),
                     name_of(dtype), to_string(layout));
}

DType expected_type(Output rule, DType tested) {
  switch (rule) {
    case Output::boolean:
      return DType::boolean;
    case Output::index:
      return DType::i64;
    case Output::floating:
      return is_floating(tested) ? tested : default_dtype();
    case Output::accumulated:
      return is_floating(tested) ? tested : DType::i64;
    case Output::same:
    case Output::any:
      break;
  }
  return tested;
}

Tensors reference_inputs(const Sample& s, const Tensors& inputs) {
  Tensors result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool own_type = s.inputs[i].dtype && !is_floating(*s.inputs[i].dtype);
    const DType type = own_type ? inputs[i].dtype() : DType::f64;
    result.push_back(from_data(inputs[i].to_vector<double>(), inputs[i].sizes(), {.dtype = type}));
  }
  return result;
}

namespace {

/// Random weights for the outputs' gradients, in numbers that `rounded_as` holds exactly.
Tensors cotangents(const Tensors& outputs, DType dtype, DType rounded_as) {
  Generator g(7);
  Tensors result;
  for (const Tensor& y : outputs) {
    std::vector<double> v(static_cast<std::size_t>(y.numel()));
    for (double& x : v) x = static_cast<double>(static_cast<float>(2 * g.uniform() - 1));
    result.push_back(from_data(v, y.sizes(), {.dtype = rounded_as}).to(dtype).to(y.device()));
  }
  return result;
}

}  // namespace

bool wants_gradient(const InputSpec& spec, DType tested) {
  return spec.differentiable && is_floating(spec.dtype.value_or(tested));
}

Tensors gradients(const OpCase& c, const Sample& s, const Tensors& values, DType dtype, DType rounded_as) {
  Tensors leaves, wanted;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Tensor x = values[i].detach();
    if (wants_gradient(s.inputs[i], dtype)) wanted.push_back(x.requires_grad_());
    leaves.push_back(x);
  }
  Tensors outputs;
  for (const Tensor& y : op_of(c, s)(leaves))
    if (y.requires_grad()) outputs.push_back(y);
  if (outputs.empty()) throw GradError("no output requires grad although an input does");
  return grad(outputs, wanted, {.allow_unused = true}, cotangents(outputs, dtype, rounded_as));
}

Tensors converted(const Tensors& inputs, DType from, DType to) {
  Tensors result;
  for (const Tensor& t : inputs)
    result.push_back(t.dtype() == from ? from_data(t.to_vector<double>(), t.sizes(), {.dtype = to}) : t.detach());
  return result;
}

}  // namespace levin::test
