// Runs an operation case on a device other than the CPU.

#include "support/ops/op_runs.h"
#include "support/thread_order.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/kernels/cuda.h>

#include <algorithm>
#include <utility>

namespace levin::test {

namespace {

Tensors moved(const Tensors& tensors, Device device) {
  Tensors result;
  for (const Tensor& t : tensors) result.push_back(t.to(device));
  return result;
}

/// Returns the tolerance; intermediate rounding counts only for the 16-bit floats.
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
        compare(actual[i].to(kCpu), expected[i], of_16_bit(tolerance_of(c, s), c.rounded, dtype), s.terms);
    if (!difference.empty()) return fmt::format("output {} {}", i, difference);
  }
  return {};
}

/// Gradients on the device, for incoming ones in a layout, against those in f64 on the CPU.
std::string gradients_there(const OpCase& c, const Sample& s, DType dtype, Layout incoming, Device device) {
  const Tensors inputs = make_inputs(c, s, dtype);
  manual_seed(1);
  const Tensors actual = gradients(c, s, moved(inputs, device), dtype, dtype, incoming);
  manual_seed(1);
  const Tensors expected = gradients(c, s, converted(inputs, dtype, DType::f64), DType::f64, dtype, incoming);
  const Tolerance tolerance = of_16_bit(grad_tolerance_of(c, s), c.grad_rounded, dtype);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i].defined() != expected[i].defined()) return fmt::format("gradient {} is undefined on one side", i);
    if (!actual[i].defined()) continue;
    if (actual[i].device() != device) return fmt::format("gradient {} is on {}", i, to_string(actual[i].device()));
    const std::string difference = compare(actual[i].to(kCpu), expected[i], tolerance, grad_terms_of(s));
    if (!difference.empty()) return fmt::format("gradient {} {}", i, difference);
  }
  return {};
}

/// Runs f with a thread order that depends on `what`. Returns the error with everything needed to reproduce it, or an
/// empty string.
template <class F>
std::string in_some_order(const std::string& what, const F& f) {
  const ThreadOrder order(what);
  const std::string wrong = guarded(f);
  return wrong.empty() ? wrong : what + order.note() + ": " + wrong;
}

}  // namespace

std::string check_device(const OpCase& c, Device device) {
  cuda::fill_uninitialized_memory(true);
  const auto chosen = variants(c);
  for (std::size_t i = 0; i < c.samples.size(); ++i) {
    const Sample& s = c.samples[i];
    if (s.inputs.empty()) continue;  // no input to put on the device
    for (const auto& [dtype, layout] : chosen[i])
      if (std::string wrong =
              in_some_order(describe(c, s, dtype, layout), [&] { return forward_there(c, s, dtype, layout, device); });
          !wrong.empty())
        return wrong;
    if (!c.differentiable) continue;
    for (const DType dtype : c.grad_dtypes) {
      if (std::ranges::find(c.dtypes, dtype) == c.dtypes.end()) continue;
      const Layout incoming = kAllLayouts[i % kAllLayouts.size()];  // the samples share the layouts out
      const std::string what = fmt::format("gradients of {} for an incoming one that is {}",
                                           describe(c, s, dtype, Layout::contiguous), to_string(incoming));
      if (std::string wrong =
              in_some_order(what, [&] { return gradients_there(c, s, dtype, incoming, device); });
          !wrong.empty())
        return wrong;
    }
  }
  return {};
}

}  // namespace levin::test
