#include "autograd_meta.h"
#include "errors.h"

#include <levin/autograd/function.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>

#include <algorithm>

namespace levin::detail {

void append_tensors(std::vector<Tensor>& list, const Tensor& t) { list.push_back(t); }
void append_tensors(std::vector<Tensor>& list, const std::vector<Tensor>& t) {
  list.insert(list.end(), t.begin(), t.end());
}

namespace {

bool is_among(const Tensor& t, std::span<const Tensor> list) {
  return std::ranges::any_of(list, [&](const Tensor& other) { return other.defined() && other.is_same(t); });
}

void check_dirty(const Tensor& t, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  if (!is_among(t, inputs) || !is_among(t, outputs))
    fail<GradError>(
        "[mark_dirty] the tensor of shape {} is no {} of forward. Mark inputs that were changed in place, and return "
        "them.",
        t.sizes(), is_among(t, inputs) ? "result" : "input");
  if (t.requires_grad() && t.is_leaf())
    throw GradError("[mark_dirty] a leaf that requires grad cannot be changed in place; clone it first.");
}

}  // namespace

void attach_custom(const NodePtr& node, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Context::Marks none{}, &marks = node->marks() ? *node->marks() : none;
  bool wanted = false;
  for (const Edge& e : node->edges) wanted = wanted || e;
  for (const Tensor& t : inputs)
    node->inputs.push_back(t.defined() ? TensorMeta{t.sizes(), t.dtype(), t.device()} : TensorMeta{});
  const auto marked = [](const auto& list, const Tensor& t) { return is_among(t, {list.begin(), list.end()}); };
  for (const Tensor& t : marks.dirty) check_dirty(t, inputs, outputs);
  for (Tensor& y : outputs) {
    const auto index = static_cast<std::uint32_t>(node->outputs.size());
    node->outputs.push_back({y.sizes(), y.dtype(), y.device()});
    if (!wanted || !is_differentiable(y.dtype()) || marked(marks.constant, y)) continue;
    if (marked(marks.dirty, y)) {
      const Tensor result = alias(y, y.sizes(), y.strides(), y.storage_offset());
      set_history(result, node, index);
      adopt_history("Function", y, result);
    } else {
      if (is_among(y, inputs)) y = alias(y, y.sizes(), y.strides(), y.storage_offset());
      set_history(y, node, index);
    }
  }
  node->forget_marked();
}

void refuse_second(std::span<const Tensor> incoming, Grads& gradients) {
  for (Tensor& t : gradients) {
    if (!t.defined()) continue;
    const Tensor y = alias(t, t.sizes(), t.strides(), t.storage_offset());
    if (record("once_differentiable", y, incoming, [](Context&, const Tensor&) -> Grads {
          throw GradError(
              "[Function] its backward is once_differentiable, so it has no second derivative. Compose "
              "backward of public operations and remove the mark.");
        }))
      t = y;
  }
}

std::vector<Tensor> materialize(const Node& node, std::span<const Tensor> grads) {
  std::vector<Tensor> full;
  for (int i = 0; i < node.outputs.size(); ++i) {
    const TensorMeta& m = node.outputs[i];
    const bool given = static_cast<std::size_t>(i) < grads.size() && grads[static_cast<std::size_t>(i)].defined();
    if (!given && node.marks() && !node.marks()->materialize) {
      full.emplace_back();
      continue;
    }
    full.push_back(given ? grads[static_cast<std::size_t>(i)] : zeros(m.sizes, {.dtype = m.dtype, .device = m.device}));
  }
  return full;
}

}  // namespace levin::detail
