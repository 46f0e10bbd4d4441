#include "fuzz/noise.h"

#include "support/ops/op_runs.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace levin::fuzz {

namespace {

bool takes(const OpCase& c, DType t) { return std::ranges::find(c.dtypes, t) != c.dtypes.end(); }

/// Returns whether an operation's inputs may be other operations' results, and its results have the type under test.
bool fits_into_graph(const OpCase& c, DType t) {
  return c.draw && c.differentiable && takes(c, t) &&
         (c.outputs[0] == test::Output::same || c.outputs[0] == test::Output::floating ||
          c.outputs[0] == test::Output::accumulated);
}

/// Cuts or repeats x to `sizes`, by views and index_select, or in the reference by a loop.
Tensor fit(const Tensor& x, const Shape& sizes, bool reference) {
  if (x.sizes() == sizes) return x;
  const int64_t n = sizes.numel(), have = x.numel();
  if (reference) {
    const std::vector<double> v = x.to_vector<double>();
    std::vector<double> y;
    for (int64_t i = 0; i < n; ++i) y.push_back(v[static_cast<std::size_t>(i % have)]);
    return from_data(y, sizes);
  }
  if (n == have) return reshape(x, sizes);
  const Tensor flat = reshape(x, {have});
  if (n < have) return reshape(narrow(flat, 0, 0, n), sizes);
  return reshape(index_select(flat, 0, remainder(arange(n), Scalar(have))), sizes);
}

Tensors step_outputs(const Program& p, const Step& step, const Tensors& values, bool reference, Noise* noise) {
  Tensors inputs;
  for (std::size_t i = 0; i < step.sources.size(); ++i) {
    const test::InputSpec& spec = step.sample.inputs[i];
    Tensor x = fit(values[step.sources[i]], spec.sizes, reference);
    if (noise && x.is_floating() && !spec.dtype) x = noise->of_input(x);
    inputs.push_back(x);
  }
  manual_seed(1);
  const TensorFunction& f = !reference              ? test::op_of(*step.op_case, step.sample)
                            : step.sample.reference ? step.sample.reference
                                                    : step.op_case->reference;
  const Tensors outputs = f(inputs);
  if (noise && p.is_graph() && outputs[0].requires_grad())
    for (const Tensor& x : inputs)
      if (x.requires_grad()) noise->of_gradients(x, outputs[0], step);
  return outputs;
}

/// Returns one of the existing values, or nothing if a leaf is to be drawn.
std::optional<std::size_t> draw_value(Draw& d, const Tensors& values, const test::InputSpec& spec) {
  if (values.empty() || spec.dtype || !spec.differentiable || !d.chance(70)) return std::nullopt;
  const std::size_t last = values.size() - 1,
                    place = last - static_cast<std::size_t>(d.below(static_cast<int64_t>(last) + 1));
  const Tensor& known = values[place];
  if (known.dtype() != DType::f64 || (known.numel() == 0 && spec.sizes.numel() > 0)) return std::nullopt;
  const std::vector<double> numbers = known.to_vector<double>();
  if (spec.finite && !std::ranges::all_of(numbers, [](double v) { return std::isfinite(v); })) return std::nullopt;
  if (spec.sign && std::ranges::any_of(numbers, [](double v) { return std::isnan(v); })) return std::nullopt;
  return place;
}

}  // namespace

Program draw_program(Draw& d, const std::vector<OpCase>& cases, Family family) {
  const no_grad guard;
  Program p;
  const bool graph = family == Family::graph;
  const int64_t count = graph ? d.between(1, 4) + (d.chance(90) ? 2 : 0) : 1;
  if (graph) p.dtype = d.chance(50) ? DType::f32 : DType::f64;
  std::vector<const OpCase*> fitting;
  for (const OpCase& c : cases)
    if (!graph || fits_into_graph(c, p.dtype)) fitting.push_back(&c);

  struct Place {
    bool leaf;
    std::size_t number;
    bool typed;  ///< of the type under test, as the inputs of other operations have to be
  };
  Tensors values;             // leaves and results in order, in f64, as the reference sees them
  std::vector<Place> places;  // of each value
  for (int64_t n = 0; n < count; ++n) {
    const OpCase& c = *d.of(fitting);
    if (!graph) p.dtype = d.of(c.dtypes);
    Step step{.op_case = &c, .sample = c.draw ? c.draw(d) : d.of(c.samples)};
    for (const test::InputSpec& spec : step.sample.inputs) {
      std::optional<std::size_t> source = graph ? draw_value(d, values, spec) : std::nullopt;
      if (!source || !places[*source].typed) {
        p.leaves.push_back(draw_leaf(d, spec, p.dtype, c.draw != nullptr));
        values.push_back(p.leaves.back().exact());
        places.push_back({true, p.leaves.size() - 1, !spec.dtype});
        source = values.size() - 1;
      }
      step.sources.push_back(*source);
    }
    values.push_back(step_outputs(p, step, values, step.sample.reference || c.reference, nullptr)[0]);
    places.push_back({false, p.steps.size(), true});
    p.steps.push_back(std::move(step));
    d.at_hand.clear();
    for (const Tensor& v : values) d.at_hand.push_back(v.sizes());
  }
  for (Step& step : p.steps)  // leaves come first in a program
    for (std::size_t& source : step.sources) {
      const Place place = places[source];
      source = place.leaf ? place.number : p.leaves.size() + place.number;
    }
  d.at_hand.clear();
  return p;
}

Tensors run(const Program& p, const Tensors& leaves, bool reference, Noise* noise, Tensors* results_of_steps) {
  Tensors values = leaves, outputs;
  std::vector<bool> used(p.leaves.size() + p.steps.size());
  for (const Step& s : p.steps)
    for (const std::size_t source : s.sources) used[source] = true;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const Tensors results = step_outputs(p, p.steps[i], values, reference, noise);
    if (results_of_steps) results_of_steps->push_back(results[0]);
    const bool taken = used[p.leaves.size() + i];
    values.push_back(noise && taken ? noise->of_result(results[0], p.steps[i]) : results[0]);
    if (i + 1 == p.steps.size())
      outputs.insert(outputs.end(), results.begin(), results.end());
    else if (!taken)
      outputs.push_back(results[0]);
  }
  return outputs;
}

std::vector<OutputRule> output_rules(const Program& p, const Tensors& outputs) {
  std::vector<OutputRule> rules;
  std::vector<bool> used(p.leaves.size() + p.steps.size());
  for (const Step& s : p.steps)
    for (const std::size_t source : s.sources) used[source] = true;
  for (std::size_t i = 0; i + 1 < p.steps.size(); ++i)
    if (!used[p.leaves.size() + i]) rules.push_back({&p.steps[i], 0});
  for (std::size_t k = 0; rules.size() < outputs.size(); ++k) rules.push_back({&p.steps.back(), k});
  return rules;
}

bool has_reference(const Program& p) {
  return std::ranges::all_of(p.steps, [](const Step& s) { return s.sample.reference || s.op_case->reference; });
}

}  // namespace levin::fuzz
