#pragma once
// Second derivatives of fused operations, by differentiating their composed forms.

#include <levin/autograd/engine.h>
#include <levin/autograd/node.h>
#include <levin/autograd/ops/view.h>

#include <vector>

namespace levin::ops {

/// Returns the gradients of an operation whose inputs are the first `count` saved tensors: composed(inputs) computes
/// its outputs again with public operations, whose graph gives further derivatives. `upstream` holds the gradients of
/// the outputs; undefined ones are left out.
template <class F>
Grads composed_gradients(const Context& k, std::span<const Tensor> upstream, int count, const F& composed) {
  std::vector<Tensor> inputs, wanted, outputs, weights;
  for (int i = 0; i < count; ++i) {
    // Views, so that an input that was computed from another one does not count as a path to it.
    const Tensor x = k.saved(i);
    inputs.push_back(x.defined() ? view(x, x.sizes()) : x);
    if (k.needs(i)) wanted.push_back(inputs.back());
  }
  const std::vector<Tensor> results = composed(inputs);
  for (std::size_t i = 0; i < upstream.size(); ++i) {
    if (!upstream[i].defined()) continue;
    outputs.push_back(results[i]);
    weights.push_back(upstream[i]);
  }
  const std::vector<Tensor> found = grad(outputs, wanted, {.create_graph = true, .allow_unused = true}, weights);
  Grads grads(count);
  for (int i = 0, next = 0; i < count; ++i)
    if (k.needs(i)) grads[i] = found[static_cast<std::size_t>(next++)];
  return grads;
}

}  // namespace levin::ops
