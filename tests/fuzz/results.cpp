// Runs a program in Levin, with gradients.

#include "fuzz/compare.h"

#include "fuzz/noise.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>

#include <algorithm>

namespace levin::fuzz {

namespace {

Tensors tensors_of(const std::vector<Leaf>& leaves, bool exact) {
  Tensors result;
  for (const Leaf& leaf : leaves) result.push_back(exact ? leaf.exact() : leaf.tensor());
  return result;
}

/// Returns the outputs that depend on a differentiable leaf.
Tensors differentiable(const Tensors& outputs) {
  Tensors result;
  for (const Tensor& y : outputs)
    if (y.requires_grad()) result.push_back(y);
  return result;
}

Tensors as_leaves(const Program& p, const Tensors& values, Tensors& wanted) {
  Tensors leaves;
  for (std::size_t i = 0; i < values.size(); ++i) {
    leaves.push_back(values[i].detach());
    if (p.leaves[i].differentiable) wanted.push_back(leaves.back().requires_grad_());
  }
  return leaves;
}

}  // namespace

std::vector<double> weights_of(int64_t elements, std::size_t gradient) {
  std::vector<double> weights(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = (static_cast<double>((i * 5 + gradient * 3) % 7) - 2.5) / 4;
  return weights;
}

bool compares_gradients(const Program& p) {
  return is_floating(p.dtype) && std::ranges::all_of(p.steps, [&](const Step& s) {
           const std::vector<DType>& narrow = s.op_case->grad_dtypes;
           return s.op_case->differentiable &&
                  (p.dtype == DType::f64 || std::ranges::find(narrow, p.dtype) != narrow.end());
         });
}

bool compares_second_gradients(const Program& p) {
  return std::ranges::all_of(p.steps, [](const Step& s) { return s.op_case->twice && !s.op_case->zero_gradient; });
}

void draw_cotangents(Draw& d, Program& p) {
  if (!compares_gradients(p)) return;
  try {
    const bool finite = std::ranges::any_of(p.steps, [](const Step& s) {
      return std::ranges::any_of(s.sample.inputs,
                                 [](const test::InputSpec& i) { return (i.finite || i.own) && !i.dtype; });
    });
    Tensors wanted;
    for (const Tensor& y : differentiable(run(p, as_leaves(p, tensors_of(p.leaves, true), wanted), false)))
      p.cotangents.push_back(draw_leaf(d, {.sizes = y.sizes(), .finite = finite}, p.dtype, true));
  } catch (const std::exception&) {
    p.cotangents.clear();  // check() meets the same exception and reports it
  }
}

Results run_levin(const Program& p, bool exact, Noise* noise) {
  const Noise::Scope scope(noise);
  Results r;
  const Tensors values = tensors_of(p.leaves, exact);
  if (p.cotangents.empty()) {
    r.outputs = run(p, values, false, noise);
    return r;
  }
  Tensors wanted, cotangents;
  const Tensors leaves = as_leaves(p, values, wanted);
  r.outputs = run(p, leaves, false, noise);
  const Tensors outputs = differentiable(r.outputs);
  const bool twice = compares_second_gradients(p);
  for (Tensor g : tensors_of(p.cotangents, exact)) {
    if (noise) g = noise->of_input(g);
    cotangents.push_back(twice ? g.detach().requires_grad_() : g);
  }
  r.first = grad(outputs, wanted, {.create_graph = twice, .allow_unused = true}, cotangents);
  if (!twice) return r;
  Tensors gradients, weights;
  for (std::size_t i = 0; i < r.first.size(); ++i) {
    const Tensor& g = r.first[i];
    if (!g.defined() || !g.requires_grad()) continue;
    gradients.push_back(g);
    weights.push_back(from_data(weights_of(g.numel(), i), g.sizes(), {.dtype = g.dtype()}));
  }
  if (gradients.empty()) return r;
  wanted.insert(wanted.end(), cotangents.begin(), cotangents.end());
  r.second = grad(gradients, wanted, {.allow_unused = true}, weights);
  return r;
}

}  // namespace levin::fuzz
