// Recording: adding operations, views and in-place operations to the graph.

#include "autograd_meta.h"
#include "errors.h"
#include "ops/region.h"
#include "ops/spectral/complex.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>

#include <algorithm>

namespace levin {

namespace {

bool requires_grad(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  return meta && (meta->requires_grad || meta->grad_fn || meta->view) && t.requires_grad();
}

NodePtr make_node(const char* name, std::size_t inputs) {
  auto node = make_intrusive<Node>(name);
  node->edges.reserve(static_cast<int>(inputs));
  node->inputs.reserve(static_cast<int>(inputs));
  return node;
}

void add_input(Node& node, const Tensor& t) {
  node.edges.push_back(gradient_edge(t));
  node.inputs.push_back(t.defined() ? TensorMeta{t.sizes(), t.dtype(), t.device()} : TensorMeta{});
}

void add_output(const NodePtr& node, const Tensor& t) {
  const int index = node->outputs.size();
  node->outputs.push_back({t.sizes(), t.dtype(), t.device()});
  if (is_differentiable(t.dtype())) set_history(t, node, static_cast<std::uint32_t>(index));
}

template <class Inputs, class Get>
bool any_requires_grad(const Inputs& inputs, Get get) {
  if (!grad_enabled()) return false;
  for (const auto& i : inputs)
    if (requires_grad(get(i))) return true;
  return false;
}

constexpr auto of_ref = [](const InputRef& r) -> const Tensor& { return *r.tensor; };
constexpr auto of_tensor = [](const Tensor& t) -> const Tensor& { return t; };

template <class Inputs, class Get>
Node* record_node(const char* name, const Tensor& output, const Inputs& inputs, Get get, BackwardFn backward) {
  if (!any_requires_grad(inputs, get) || !is_differentiable(output.dtype())) return nullptr;
  NodePtr node = make_node(name, inputs.size());
  for (const auto& i : inputs) add_input(*node, get(i));
  node->backward = backward;
  add_output(node, output);
  return node.get();
}

template <class Outputs, class Inputs, class Get>
Node* record_multi(const char* name, const Outputs& outputs, const Inputs& inputs, Get get, MultiBackwardFn backward) {
  if (!any_requires_grad(inputs, get)) return nullptr;
  NodePtr node = make_node(name, inputs.size());
  for (const auto& i : inputs) add_input(*node, get(i));
  node->multi_backward = backward;
  Node* kept = nullptr;
  for (const auto& o : outputs) {
    add_output(node, get(o));
    if (is_differentiable(get(o).dtype())) kept = node.get();
  }
  return kept;
}

}  // namespace

bool would_record(std::initializer_list<InputRef> inputs) { return any_requires_grad(inputs, of_ref); }

Context* record(const char* name, const Tensor& output, std::initializer_list<InputRef> inputs, BackwardFn backward) {
  return record_node(name, output, inputs, of_ref, backward);
}

Context* record(const char* name, const Tensor& output, std::span<const Tensor> inputs, BackwardFn backward) {
  return record_node(name, output, inputs, of_tensor, backward);
}

Context* record(const char* name, std::initializer_list<InputRef> outputs, std::initializer_list<InputRef> inputs,
                MultiBackwardFn backward) {
  return record_multi(name, outputs, inputs, of_ref, backward);
}

Context* record(const char* name, std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                MultiBackwardFn backward) {
  return record_multi(name, outputs, inputs, of_tensor, backward);
}

// Views

Tensor make_view(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset,
                 std::optional<DType> dtype) {
  Tensor v = alias(x, sizes, strides, offset, dtype);
  if (inference_enabled() || !is_differentiable(x.dtype()) || x.is_inference()) return v;
  AutogradMeta* meta = meta_or_null(x);
  if (!grad_enabled() && !x.requires_grad()) return v;
  auto info = std::make_unique<ViewInfo>();
  const bool of_view = meta && meta->view;
  info->base = of_view ? meta->view->base : x;
  info->recorded = grad_enabled() && (!of_view || meta->view->recorded);
  info->version = v.version();
  make_meta(v).view = std::move(info);
  return v;
}

namespace {

/// Returns a new view of the base where t lies. The types differ if one is a view of the other as real or as complex.
Tensor renewed_view(const Tensor& base, const Tensor& t) {
  if (base.dtype() == t.dtype()) return as_strided(base, t.sizes(), t.strides(), t.storage_offset());
  const ops::Region r = ops::real_region_of(t);
  const Tensor parts = as_strided(base.is_complex() ? view_as_real(base) : base, r.sizes, r.strides, r.offset);
  return t.is_complex() ? view_as_complex(parts) : parts;
}

}  // namespace

const NodePtr& current_grad_fn(const Tensor& t, AutogradMeta& meta) {
  if (!meta.view || !meta.view->recorded || meta.view->version == t.version()) return meta.grad_fn;
  // The base was modified through another view: this view now takes its history from the base.
  const Tensor& base = meta.view->base;
  meta.view->version = t.version();
  if (!base.requires_grad()) return meta.grad_fn;
  enable_grad guard;
  const Tensor fresh = renewed_view(base, t);
  meta.grad_fn = static_cast<AutogradMeta*>(fresh.impl()->autograd.get())->grad_fn;
  meta.output = 0;
  return meta.grad_fn;
}

// In-place operations

bool begin_in_place(const char* name, const Tensor& x, std::initializer_list<InputRef> others) {
  for (int i = 0; i < x.dim(); ++i)
    if (x.strides()[i] == 0 && x.sizes()[i] > 1)
      fail<ShapeError>(
          "[{}] the tensor is expanded along axis {}, so several elements share memory; clone it before writing in "
          "place.",
          name, i);
  if (x.is_inference() && !inference_enabled())
    fail<GradError>("[{}] a tensor made under inference_mode cannot be edited outside of it; clone it.", name);
  if (!grad_enabled()) return false;
  AutogradMeta* meta = meta_or_null(x);
  if (meta && !meta->view && meta->requires_grad && !meta->grad_fn)
    fail<GradError>("[{}] a leaf that requires grad cannot be edited in place; do it under no_grad, or on a clone.",
                    name);
  const bool wanted = requires_grad(x) || any_requires_grad(others, of_ref);
  if (meta && meta->view && (wanted || meta->view->base.requires_grad())) {
    const Tensor& base = meta->view->base;
    if (base.requires_grad() && base.is_leaf())
      fail<GradError>(
          "[{}] a view of a leaf that requires grad cannot be edited in place; do it under no_grad, or on a clone.",
          name);
    if (!meta->view->recorded)
      fail<GradError>(
          "[{}] this view was made under no_grad, so an edit could not reach its base's history; make the view while "
          "recording.",
          name);
    return true;
  }
  return wanted;
}

bool is_spare(const Tensor& x) {
  if (!is_sole_owner(x) || !x.is_contiguous() || tracing() || (x.is_inference() && !inference_enabled())) return false;
  const AutogradMeta* meta = meta_or_null(x);
  return !meta || (!meta->retains_grad && (meta->grad_fn || !meta->requires_grad));
}

void end_in_place(const Tensor& x) { x.impl()->storage->bump_version(); }

namespace {

/// Returns g laid out in memory of `span` elements at the region's positions; the elements in between are zero.
Tensor laid_out(const Tensor& g, const ops::Region& region, int64_t span) {
  if (region.offset == 0 && region.end() == span && is_contiguous(region.sizes, region.strides)) return contiguous(g);
  const Tensor memory = zeros({span}, {.dtype = g.dtype(), .device = g.device()});
  as_strided(memory, region.sizes, region.strides, region.offset).copy_(g);
  return memory;
}

/// Computes the gradients of a base and of the result that was written into a part of it: the base gets the gradient
/// outside of the part, the result the gradient inside.
Grads copy_slices_gradient(Context& c, const Tensor& gradient) {
  const Tensor g = gradient.is_complex() ? view_as_real(gradient) : gradient;
  const auto& [whole, part] = c.get<std::pair<ops::Region, ops::Region>>();
  const int64_t span = std::max(whole.end(), part.end());
  Tensor outside, inside;
  if (c.needs(0)) {
    const Tensor edited = zeros({span}, {.dtype = kBool, .device = g.device()});
    {
      no_grad guard;
      as_strided(edited, part.sizes, part.strides, part.offset).fill_(true);
    }
    outside = masked_fill(g, as_strided(edited, whole.sizes, whole.strides, whole.offset), 0);
  }
  if (c.needs(1)) {
    const Tensor memory = laid_out(g, whole, span);
    inside = as_strided(memory, part.sizes, part.strides, memory.storage_offset() + part.offset);
  }
  const auto typed = [&](const Tensor& part_g, int i) {
    return part_g.defined() && is_complex(c.input(i).dtype) ? ops::as_complex(part_g) : part_g;
  };
  return {typed(outside, 0), typed(inside, 1)};
}

/// Sets the base's new history after an in-place operation on a view: gradients outside the view pass through, those
/// inside go through the operation (PyTorch calls this node CopySlices).
void rebase_base(const char* name, const Tensor& view, const Tensor& result) {
  AutogradMeta& meta = make_meta(view);
  const Tensor base = meta.view->base;
  if (ops::region_of(base).may_overlap())
    fail<GradError>(
        "[{}] the view's base has shape {} and strides {}, so several of its elements may share memory, and an edit "
        "through the view cannot be recorded; call contiguous() on the base first.",
        name, base.sizes(), base.strides());
  NodePtr node = make_node("copy_slices", 2);
  add_input(*node, base);
  add_input(*node, result);
  node->set(ops::shared_memory(ops::real_region_of(base), ops::real_region_of(view)));
  node->backward = copy_slices_gradient;
  node->outputs.push_back({base.sizes(), base.dtype(), base.device()});
  set_history(base, node, 0);
  meta.view->version = view.version() - 1;  // forces the view's history to be rebuilt from the base
}

}  // namespace

void adopt_history(const char* name, const Tensor& x, const Tensor& result) {
  AutogradMeta& meta = make_meta(x);
  if (meta.view) {
    rebase_base(name, x, result);
  } else if (const Edge edge = gradient_edge(result)) {
    set_history(x, edge.node, edge.output);
  }
}

const Tensor& replace_in_place(const char* name, const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  // The old value moves to new memory and keeps the history, so that f may save it.
  Tensor old;
  {
    no_grad guard;
    old = clone(x);
  }
  if (const Edge edge = gradient_edge(x)) set_history(old, edge.node, edge.output);
  Tensor result = f(old);
  if (result.sizes() != x.sizes())
    fail<ShapeError>("[{}] the result has shape {}, which does not fit into the tensor of shape {}.", name,
                     result.sizes(), x.sizes());
  result = to(result, x.dtype());
  {
    no_grad guard;
    x.copy_(result);
  }
  adopt_history(name, x, result);
  return x;
}

}  // namespace levin
