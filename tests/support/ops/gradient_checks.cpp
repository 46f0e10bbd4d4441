// Gradients of large samples, and with incoming gradients that are not contiguous.

#include "support/ops/op_runs.h"
#include "support/small_cases.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>

#include <algorithm>
#include <cmath>

namespace levin::test {

namespace {

constexpr double kStep = 1e-5;        // step of central differences
constexpr double kSlopeError = 1e-4;  // their allowed error, relative to the root of the sum of the squared slopes

/// Outputs in double precision, by the reference where there is one.
Tensors exact_outputs(const OpCase& c, const Sample& s, const Tensors& inputs) {
  const no_grad guard;
  const TensorFunction& reference = s.reference ? s.reference : c.reference;
  manual_seed(1);
  return reference ? reference(reference_inputs(s, inputs)) : op_of(c, s)(inputs);
}

/// A run in f64 with the gradients of sum(outputs * weights).
struct Wide {
  Tensors inputs{};
  Recorded run{};
  Tensors weights{}, gradient{};
};

/// Compares the slope along a random direction by the f64 gradients with central differences of the reference. One
/// wrong element of 100,000 exceeds the allowed difference.
std::string slope_along(const OpCase& c, const Sample& s, const Wide& wide) {
  Generator g(11);
  Tensors forth, back;
  double slope = 0, squares = 0;
  for (std::size_t i = 0, k = 0; i < wide.inputs.size(); ++i) {
    forth.push_back(wide.inputs[i]);
    back.push_back(wide.inputs[i]);
    if (!wants_gradient(s.inputs[i], DType::f64)) continue;
    const Tensor& own = wide.gradient[k++];
    std::vector<double> up = wide.inputs[i].to_vector<double>(), down = up;
    const std::vector<double> slopes = own.defined() ? own.to_vector<double>() : std::vector<double>(up.size());
    for (std::size_t e = 0; e < up.size(); ++e) {
      const double along = 2 * g.uniform() - 1, part = slopes[e] * along;
      up[e] += kStep * along;
      down[e] -= kStep * along;
      slope += part;
      squares += part * part;
    }
    forth.back() = from_data(up, wide.inputs[i].sizes());
    back.back() = from_data(down, wide.inputs[i].sizes());
  }
  const Tensors to = exact_outputs(c, s, forth), from = exact_outputs(c, s, back);
  double expected = 0;
  for (std::size_t k = 0; k < wide.run.places.size(); ++k) {
    const std::size_t place = wide.run.places[k];
    const auto w = wide.weights[k].to_vector<double>(), a = to[place].to_vector<double>(),
               b = from[place].to_vector<double>();
    for (std::size_t e = 0; e < w.size(); ++e) expected += w[e] * (a[e] - b[e]) / (2 * kStep);
  }
  const double allowed = kSlopeError * std::sqrt(squares);
  if (squares > 0 && std::abs(slope - expected) <= allowed) return {};
  return fmt::format(
      "the slope along a random direction is {:.9g} by the gradients, {:.9g} by the reference: error {:.3g}, allowed "
      "{:.3g}",
      slope, expected, std::abs(slope - expected), allowed);
}

/// Gradients for incoming ones that lie in memory as `layout` says, against those for contiguous copies of them.
std::string for_layout(const OpCase& c, const Sample& s, const Recorded& run, DType dtype, Layout layout) {
  const Tensors incoming = random_cotangents(run.outputs, dtype, dtype, layout);
  if (std::ranges::all_of(incoming, [](const Tensor& g) { return g.is_contiguous(); })) return {};
  Tensors copies;
  for (const Tensor& g : incoming) copies.push_back(g.contiguous());
  const Tensors actual = gradients(run, incoming, /*retain_graph=*/true);
  const std::string wrong = compare_gradients(actual, gradients(run, copies, true), c, s);
  return wrong.empty() ? wrong : fmt::format("for an incoming gradient that is {}, {}", to_string(layout), wrong);
}

/// Types whose gradients are compared with others.
std::vector<DType> gradient_types(const OpCase& c) {
  std::vector<DType> result;
  for (const DType t : c.grad_dtypes)
    if (std::ranges::find(c.dtypes, t) != c.dtypes.end()) result.push_back(t);
  if (result.empty()) result.push_back(DType::f64);
  return result;
}

std::string large_gradients(const OpCase& c, const Sample& s, DType dtype, bool strided) {
  const Tensors inputs = make_inputs(c, s, dtype);
  Wide wide{.inputs = converted(inputs, dtype, DType::f64)};
  manual_seed(1);
  wide.run = recorded(c, s, wide.inputs, DType::f64);
  wide.weights = random_cotangents(wide.run.outputs, DType::f64, dtype);
  wide.gradient = gradients(wide.run, wide.weights);
  if (std::string wrong = slope_along(c, s, wide); !wrong.empty()) return wrong;
  manual_seed(1);
  const Recorded run = recorded(c, s, inputs, dtype);
  const Tensors own = gradients(run, random_cotangents(run.outputs, dtype, dtype), /*retain_graph=*/true);
  if (std::string wrong = compare_gradients(own, wide.gradient, c, s); !wrong.empty() || !strided) return wrong;
  return for_layout(c, s, run, dtype, run.outputs[0].dim() > 1 ? Layout::transposed : Layout::sliced);
}

}  // namespace

std::string check_large_gradients(const OpCase& c) {
  if (!c.differentiable || c.zero_gradient) return {};
  const DType dtype = gradient_types(c)[0];
  for (const std::vector<Sample>* list : {&c.large, &c.limits})
    for (const Sample& s : *list) {
      const bool first = &s == c.large.data();
      if (small_cases() && !first) return {};
      if (std::string wrong = guarded([&] { return large_gradients(c, s, dtype, first); }); !wrong.empty())
        return describe(c, s, dtype, Layout::contiguous) + ": " + wrong;
    }
  return {};
}

std::string check_incoming_layouts(const OpCase& c) {
  if (!c.differentiable) return {};
  for (const Sample& s : c.samples)
    for (const DType dtype : gradient_types(c)) {
      const std::string wrong = guarded([&]() -> std::string {
        manual_seed(1);
        const Recorded run = recorded(c, s, make_inputs(c, s, dtype), dtype);
        for (const Layout layout : {Layout::transposed, Layout::sliced, Layout::expanded})
          if (std::string text = for_layout(c, s, run, dtype, layout); !text.empty()) return text;
        return {};
      });
      if (!wrong.empty()) return describe(c, s, dtype, Layout::contiguous) + ": " + wrong;
    }
  return {};
}

}  // namespace levin::test
