#include "support/ops/op_runs.h"
#include "support/small_cases.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/ops/creation.h>

#include <algorithm>

namespace levin::test {

namespace {

bool has_elements(const Sample& s) {
  return std::ranges::all_of(s.inputs, [](const InputSpec& i) { return i.sizes.numel() > 0; });
}

}  // namespace

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

bool wants_gradient(const InputSpec& spec, DType tested) {
  return spec.differentiable && is_floating(spec.dtype.value_or(tested));
}

Recorded recorded(const OpCase& c, const Sample& s, const Tensors& values, DType dtype) {
  Recorded run;
  Tensors inputs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    inputs.push_back(values[i].detach());
    if (wants_gradient(s.inputs[i], dtype)) run.leaves.push_back(inputs.back().requires_grad_());
  }
  const Tensors all = op_of(c, s)(inputs);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].requires_grad()) run.outputs.push_back(all[i]), run.places.push_back(i);
  if (run.outputs.empty()) throw GradError("no output requires grad although an input does");
  return run;
}

Tensors random_cotangents(const Tensors& outputs, DType dtype, DType rounded_as, Layout layout) {
  Generator g(7);
  const Values values = [](int64_t, int64_t, Generator& own) {
    return static_cast<double>(static_cast<float>(2 * own.uniform() - 1));
  };
  Tensors result;
  for (const Tensor& y : outputs) {
    const InputSpec spec{.sizes = y.sizes(), .values = values};
    const Tensor base = make_base(spec, rounded_as, layout, g).to(dtype).to(y.device());
    result.push_back(arrange({.inputs = {spec}}, {base}, layout)[0]);
  }
  return result;
}

Tensors gradients(const Recorded& run, const Tensors& cotangents, bool retain_graph) {
  return grad(run.outputs, run.leaves, {.retain_graph = retain_graph, .allow_unused = true}, cotangents);
}

Tensors gradients(const OpCase& c, const Sample& s, const Tensors& values, DType dtype, DType rounded_as,
                  Layout cotangents) {
  const Recorded run = recorded(c, s, values, dtype);
  return gradients(run, random_cotangents(run.outputs, dtype, rounded_as, cotangents));
}

std::string compare_gradients(const Tensors& actual, const Tensors& expected, const OpCase& c, const Sample& s) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i].defined() != expected[i].defined()) return fmt::format("gradient {} is undefined on one side", i);
    if (!actual[i].defined()) continue;
    const std::string difference = compare(actual[i], expected[i], grad_tolerance_of(c, s), grad_terms_of(s));
    if (!difference.empty()) return fmt::format("gradient {} {}", i, difference);
  }
  return {};
}

std::string narrow_gradients(const OpCase& c, const Sample& s, DType dtype) {
  const Tensors inputs = make_inputs(c, s, dtype);
  const Tensors actual = gradients(c, s, inputs, dtype, dtype);
  return compare_gradients(actual, gradients(c, s, converted(inputs, dtype, DType::f64), DType::f64, dtype), c, s);
}

Tensors converted(const Tensors& inputs, DType from, DType to) {
  Tensors result;
  for (const Tensor& t : inputs)
    result.push_back(t.dtype() == from ? from_data(t.to_vector<double>(), t.sizes(), {.dtype = to}) : t.detach());
  return result;
}

std::vector<std::vector<Variant>> variants(const OpCase& c) {
  std::vector<Variant> all;
  for (const DType dtype : c.dtypes)
    for (const Layout layout : c.layouts) all.emplace_back(dtype, layout);
  if (!small_cases()) return std::vector(c.samples.size(), all);
  const auto sharers =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::ranges::count_if(c.samples, has_elements)));
  std::vector<std::vector<Variant>> result(c.samples.size());
  std::size_t next = 0;
  for (std::size_t s = 0; s < c.samples.size(); ++s) {
    const std::size_t share = has_elements(c.samples[s]) ? (all.size() + sharers - 1) / sharers : 1;
    for (std::size_t i = 0; i < share; ++i) result[s].push_back(all[next++ % all.size()]);
  }
  return result;
}

}  // namespace levin::test
