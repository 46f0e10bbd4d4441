#pragma once
// Functions shared by the modes of a case.

#include "support/ops/op_case.h"

#include <fmt/format.h>

namespace levin::test {

std::string describe(const OpCase& c, const Sample& s, DType dtype, Layout layout);

/// Runs f; an exception becomes text.
template <class F>
std::string guarded(const F& f) {
  try {
    return f();
  } catch (const std::exception& e) {
    return fmt::format("throws {}", e.what());
  }
}

using Variant = std::pair<DType, Layout>;
/// Returns the types and layouts of each sample: all of them, or with LEVIN_SMALL_CASES=1 a part, so that each sample
/// and each pair of a type and a layout is covered.
std::vector<std::vector<Variant>> variants(const OpCase& c);

/// The type of an output whose rule this is.
DType expected_type(Output rule, DType tested);
/// Returns the reference's inputs: contiguous, f64 unless the input has its own type.
Tensors reference_inputs(const Sample& s, const Tensors& inputs);
bool wants_gradient(const InputSpec& spec, DType tested);
/// A run on leaves: the outputs that require grad, where they stand among all outputs, and the differentiable leaves.
struct Recorded {
  Tensors outputs;
  std::vector<std::size_t> places;
  Tensors leaves;
};
Recorded recorded(const OpCase& c, const Sample& s, const Tensors& values, DType dtype);
/// Random incoming gradients in numbers that `rounded_as` holds exactly, the same on every device.
Tensors random_cotangents(const Tensors& outputs, DType dtype, DType rounded_as, Layout layout = Layout::contiguous);
Tensors gradients(const Recorded& run, const Tensors& cotangents, bool retain_graph = false);
/// Gradients of sum(outputs * cotangents) with respect to the differentiable inputs, given their values.
Tensors gradients(const OpCase& c, const Sample& s, const Tensors& values, DType dtype, DType rounded_as,
                  Layout cotangents = Layout::contiguous);
/// Returns the wrong gradient with its error, or an empty string.
std::string compare_gradients(const Tensors& actual, const Tensors& expected, const OpCase& c, const Sample& s);
/// The gradients in `dtype` against those in f64 at the same inputs.
std::string narrow_gradients(const OpCase& c, const Sample& s, DType dtype);
/// Inputs of type `from` in type `to`, the others as they are; leaves.
Tensors converted(const Tensors& inputs, DType from, DType to);

}  // namespace levin::test
