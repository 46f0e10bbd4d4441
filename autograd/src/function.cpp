#include "autograd_meta.h"

#include <levin/autograd/function.h>
#include <levin/autograd/ops/creation.h>

namespace levin::detail {

void append_tensors(std::vector<Tensor>& list, const Tensor& t) { list.push_back(t); }
void append_tensors(std::vector<Tensor>& list, const std::vector<Tensor>& t) {
  list.insert(list.end(), t.begin(), t.end());
}

void attach_custom(const NodePtr& node, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  bool wanted = false;
  for (const Edge& e : node->edges) wanted = wanted || e;
  for (const Tensor& t : inputs)
    node->inputs.push_back(t.defined() ? TensorMeta{t.sizes(), t.dtype(), t.device()} : TensorMeta{});
  for (const Tensor& y : outputs) {
    const auto index = static_cast<std::uint32_t>(node->outputs.size());
    node->outputs.push_back({y.sizes(), y.dtype(), y.device()});
    if (wanted && is_differentiable(y.dtype())) set_history(y, node, index);
  }
}

std::vector<Tensor> materialize(const Node& node, std::span<const Tensor> grads) {
  std::vector<Tensor> full;
  for (int i = 0; i < node.outputs.size(); ++i) {
    const TensorMeta& m = node.outputs[i];
    const bool given = static_cast<std::size_t>(i) < grads.size() && grads[static_cast<std::size_t>(i)].defined();
    full.push_back(given ? grads[static_cast<std::size_t>(i)] : zeros(m.sizes, {.dtype = m.dtype, .device = m.device}));
  }
  return full;
}

}  // namespace levin::detail
