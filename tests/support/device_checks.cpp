// An operation case on another device than the CPU.

#include "support/op_runs.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>

#include <algorithm>

namespace levin::test {

namespace {

Tensors moved(const Tensors& tensors, Device device) {
  Tensors result;
  for (const Tensor& t : tensors) result.push_back(t.to(device));
  return result;
}

/// What the kernels round on the way counts for the 16-bit floats alone.
Tolerance of_16_bit(Tolerance tolerance, double rounded, DType dtype) {
  if (is_floating(dtype) && size_of(dtype) == 2) tolerance.rounded = rounded;
  return tolerance;
}

/// The device's outputs against the double-precision reference, or the CPU's where there is none.
std::string forward_there(const OpCase& c, const Sample& s, DType dtype, Layout layout, Device device) {
  no_grad guard;
  const Tensors bases = make_bases(c, s, dtype, layout);
  const Tensors inputs = arrange(s, bases, layout);
  manual_seed(1);
  const Tensors actual = op_of(c, s)(arrange(s, moved(bases, device), layout));
  const TensorFunction& reference = s.reference ? s.reference : c.reference;
  manual_seed(1);
  const Tensors expected = reference ? reference(reference_inputs(s, inputs)) : op_of(c, s)(inputs);
  if (actual.size() != expected.size())
    return fmt::format("gives {} outputs, expected {}", actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i].device() != device) return fmt::format("output {} is on {}", i, to_string(actual[i].device()));
    const Output rule = c.outputs[std::min(i, c.outputs.size() - 1)];
    const DType type = expected_type(rule, dtype);
    if (rule != Output::any && actual[i].dtype() != type)
      return fmt::format("output {} is {}, expected {}", i, name_of(actual[i].dtype()), name_of(type));
    const std::string difference =
        compare(actual[i].to(kCpu), expected[i], of_16_bit(c.tolerance, c.rounded, dtype), s.terms);
    if (!difference.empty()) return fmt::format("output {} {}", i, difference);
  }
  return {};
}

/// Gradients on the device against those in f64 on the CPU.
std::string gradients_there(const OpCase& c, const Sample& s, DType dtype, Device device) {
  const Tensors inputs = make_inputs(c, s, dtype);
  manual_seed(1);
  const Tensors actual = gradients(c, s, moved(inputs, device), dtype, dtype);
  manual_seed(1);
  const Tensors expected = gradients(c, s, converted(inputs, dtype, DType::f64), DType::f64, dtype);
  const Tolerance tolerance = of_16_bit(c.grad_tolerance, c.grad_rounded, dtype);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i].defined() != expected[i].defined()) return fmt::format("gradient {} is undefined on one side", i);
    if (!actual[i].defined()) continue;
    if (actual[i].device() != device) return fmt::format("gradient {} is on {}", i, to_string(actual[i].device()));
    const std::string difference =
        compare(actual[i].to(kCpu), expected[i], tolerance, s.grad_terms > 0 ? s.grad_terms : s.terms);
    if (!difference.empty()) return fmt::format("gradient {} {}", i, difference);
  }
  return {};
}

}  // namespace

std::string check_device(const OpCase& c, Device device) {
  for (const Sample& s : c.samples) {
    if (s.inputs.empty()) continue;  // nothing that could lie on the device
    for (const DType dtype : c.dtypes)
      for (const Layout layout : c.layouts)
        if (const std::string wrong = guarded([&] { return forward_there(c, s, dtype, layout, device); });
            !wrong.empty())
          return describe(c, s, dtype, layout) + ": " + wrong;
    if (!c.differentiable) continue;
    for (const DType dtype : c.grad_dtypes) {
      if (std::ranges::find(c.dtypes, dtype) == c.dtypes.end()) continue;
      if (const std::string wrong = guarded([&] { return gradients_there(c, s, dtype, device); }); !wrong.empty())
        return describe(c, s, dtype, Layout::contiguous) + ": " + wrong;
    }
  }
  return {};
}

}  // namespace levin::test
