#include "autograd_meta.h"
#include "errors.h"

#include <levin/autograd/engine.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>

#include "live_nodes.h"
#include "saved_tensors.h"

namespace levin {

namespace {

constinit std::atomic<std::uint64_t> sequence_counter{0};

// A chain of a million nodes must not be freed by a million nested destructors: the outermost destructor drains this
// list.
struct Graveyard {
  std::vector<NodePtr> nodes;
  bool draining = false;
};
thread_local Graveyard graveyard;

void bury(NodePtr& node) {
  if (node && node->use_count() == 1) graveyard.nodes.push_back(std::move(node));
}

template <class List>
HookHandle removal(Node* node, List Node::Hooks::* list, int id) {
  return HookHandle([keep = NodePtr(node), list, id] {
    std::erase_if((*keep->hooks).*list, [id](const auto& h) { return h.id == id; });
  });
}

}  // namespace

AutogradMeta::~AutogradMeta() {
  if (accumulator) accumulator->leaf = nullptr;
  if (retains_grad && grad_fn && grad_fn->hooks)
    std::erase_if(grad_fn->hooks->retained, [this](const auto& r) {
      return r.second->autograd.get() == this || r.second->autograd == nullptr;
    });
}

AutogradMeta& make_meta(const Tensor& t) {
  auto& slot = t.impl()->autograd;
  if (!slot) slot = std::make_unique<AutogradMeta>();
  return static_cast<AutogradMeta&>(*slot);
}

std::uint64_t detail::node_count() { return sequence_counter.load(std::memory_order_relaxed); }

Node::Node(const char* name) : name_(name), sequence_(sequence_counter.fetch_add(1, std::memory_order_relaxed)) {
  if (detail::graph_is_watched()) detail::note_node(sequence_, name_);
}

Node::~Node() {
  if (detail::graph_is_watched()) detail::forget_node(sequence_);
  for (Edge& e : edges) bury(e.node);
  for (Saved& s : saved_) bury(s.grad_fn);
  if (graveyard.draining) return;
  graveyard.draining = true;
  while (!graveyard.nodes.empty()) {
    NodePtr last = std::move(graveyard.nodes.back());
    graveyard.nodes.pop_back();
    last.reset();
  }
  graveyard.draining = false;
}

Node::Hooks& Node::make_hooks() {
  if (!hooks) hooks = std::make_unique<Hooks>();
  return *hooks;
}

HookHandle Node::register_prehook(std::function<void(std::vector<Tensor>&)> hook) {
  Hooks& h = make_hooks();
  h.before.push_back({h.next_id, std::move(hook)});
  return removal(this, &Hooks::before, h.next_id++);
}

HookHandle Node::register_posthook(std::function<void(std::vector<Tensor>&, const std::vector<Tensor>&)> hook) {
  Hooks& h = make_hooks();
  h.after.push_back({h.next_id, std::move(hook)});
  return removal(this, &Hooks::after, h.next_id++);
}

// Saved values

const TensorMeta& Context::input(int i) const { return static_cast<const Node*>(this)->inputs[i]; }

void Context::save_one(const Tensor& t, bool is_output, int index) {
  if (!saves_) return;
  Saved s;
  if (t.defined()) {
    if (t.is_inference())
      fail<GradError>("[{}] a tensor made under inference_mode cannot be saved for backward; clone it first.",
                      static_cast<Node*>(this)->name());
    AutogradMeta* meta = meta_or_null(t);
    s.version = t.version();
    s.is_output = is_output;
    s.output = static_cast<std::uint32_t>(index);
    const bool leaf_with_grad = !is_output && meta && meta->requires_grad && !meta->grad_fn;
    s.is_leaf = leaf_with_grad;
    if (leaf_with_grad) {
      s.tensor = t;
    } else {
      s.tensor = alias(t, t.sizes(), t.strides(), t.storage_offset());
      if (const auto& functions = saved_tensor_functions()) {
        no_grad guard;
        s.packed = std::make_unique<PackedTensor>(functions->pack(s.tensor), functions,
                                                  TensorMeta{t.sizes(), t.dtype(), t.device()});
        s.tensor = {};
      }
      if (!is_output && meta) {
        s.grad_fn = current_grad_fn(t, *meta);
        s.output = meta->output;
      }
    }
  }
  saved_.push_back(std::move(s));
}

Tensor Context::saved(int i) const {
  const auto* node = static_cast<const Node*>(this);
  if (released_)
    fail<GradError>(
        "[{}] backward ran a second time through a graph whose saved values are gone; pass retain_graph = true to the "
        "first one.",
        node->name());
  const Saved& s = saved_[i];
  if (!s.tensor.defined() && !s.packed) return {};
  const Tensor value = s.packed ? s.packed->unpack(node->name()) : s.tensor;
  if (!s.packed && value.version() != s.version)
    fail<GradError>(
        "[{}] a tensor of shape {} needed for its gradient was changed in place: it is at version {}, expected {}. Use "
        "the out-of-place operation, or clone it first.",
        node->name(), value.sizes(), value.version(), s.version);
  const NodePtr history = s.is_output ? NodePtr(const_cast<Node*>(node)) : s.grad_fn;
  if (!history || !grad_enabled()) return value;
  Tensor t = alias(value, value.sizes(), value.strides(), value.storage_offset());
  set_history(t, history, s.output);
  return t;
}

Context::Marks& Context::own_marks() {
  if (!marks_) marks_ = std::make_unique<Marks>();
  return *marks_;
}

void Context::mark_dirty(std::initializer_list<Tensor> inputs) {
  std::ranges::copy(inputs, std::back_inserter(own_marks().dirty));
}

void Context::mark_non_differentiable(std::initializer_list<Tensor> outputs) {
  std::ranges::copy(outputs, std::back_inserter(own_marks().constant));
}

void Context::set_materialize_grads(bool on) { own_marks().materialize = on; }

void Node::forget_marked() {
  if (!marks_) return;
  marks_->dirty.clear();
  marks_->constant.clear();
}

void Context::release_saved() {
  released_ = true;
  saved_.clear();
  heap_value_.reset();
}

// Positions of tensors in the graph

void set_history(const Tensor& t, const NodePtr& node, std::uint32_t output) {
  AutogradMeta& meta = make_meta(t);
  meta.grad_fn = node;
  meta.output = output;
}

NodePtr grad_fn(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  return meta ? current_grad_fn(t, *meta) : NodePtr();
}

Edge gradient_edge(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  if (!meta) return {};
  if (const NodePtr& fn = current_grad_fn(t, *meta)) return {fn, meta->output};
  if (!meta->requires_grad) return {};
  if (!meta->accumulator) {
    meta->accumulator = make_intrusive<Node>("accumulate_grad");
    if (detail::graph_is_watched()) detail::forget_node(meta->accumulator->sequence());  // it lives as long as its leaf
    meta->accumulator->accumulates = true;
    meta->accumulator->leaf = t.impl();
    meta->accumulator->outputs.push_back({t.sizes(), t.dtype(), t.device()});
  }
  return {meta->accumulator, 0};
}

// Tensor's members

bool Tensor::requires_grad() const {
  AutogradMeta* meta = meta_or_null(*this);
  return meta && (meta->requires_grad || current_grad_fn(*this, *meta));
}

const Tensor& Tensor::requires_grad_(bool on) const {
  if (on && !is_differentiable(dtype()))
    fail<DTypeError>(
        "[requires_grad_] only floating and complex tensors have gradients; this one is {}. Convert it with "
        "x.to(kFloat32).",
        dtype());
  if (on && is_inference())
    throw GradError("[requires_grad_] this tensor was made under inference_mode; clone it outside first.");
  if (!is_leaf()) {
    if (!on) throw GradError("[requires_grad_] only a leaf can stop requiring grad; use x.detach().");
    return *this;
  }
  if (on || impl()->autograd) make_meta(*this).requires_grad = on;
  return *this;
}

bool Tensor::is_leaf() const {
  AutogradMeta* meta = meta_or_null(*this);
  return !meta || !current_grad_fn(*this, *meta);
}

const Tensor& Tensor::grad() const {
  static const Tensor none;
  AutogradMeta* meta = meta_or_null(*this);
  if (meta && meta->rows)
    throw GradError(
        "[grad] the gradient of this tensor is row-wise, as embedding() with sparse = true makes it. Read it by "
        "row_grad(x), or call densify_grad(x) first.");
  return meta ? meta->grad : none;
}

void Tensor::set_grad(const Tensor& g) const {
  if (!g.defined() && !impl()->autograd) return;
  if (g.defined() && (g.sizes() != sizes() || g.dtype() != dtype() || g.device() != device()))
    fail<ShapeError>("[set_grad] the gradient is {} {}, the tensor {} {}.", g.sizes(), g.dtype(), sizes(), dtype());
  AutogradMeta& meta = make_meta(*this);
  meta.grad = g;
  meta.rows.reset();
}

void Tensor::retain_grad() const {
  if (!requires_grad()) throw GradError("[retain_grad] this tensor does not require grad.");
  AutogradMeta& meta = make_meta(*this);
  if (!meta.grad_fn || meta.retains_grad) return;
  meta.retains_grad = true;
  meta.grad_fn->make_hooks().retained.emplace_back(meta.output, impl());
}

bool Tensor::retains_grad() const {
  AutogradMeta* meta = meta_or_null(*this);
  return meta && meta->retains_grad;
}

std::string Tensor::grad_fn() const {
  const NodePtr node = levin::grad_fn(*this);
  return node ? node->name() : "";
}

void Tensor::backward(const Tensor& gradient, const BackwardOptions& options) const {
  levin::backward({this, 1}, {&gradient, 1}, options);
}

HookHandle Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  const Edge edge = gradient_edge(*this);
  if (!edge) throw GradError("[register_hook] this tensor does not require grad.");
  Node::Hooks& h = edge.node->make_hooks();
  h.tensor.push_back({h.next_id, edge.output, std::move(hook)});
  return removal(edge.node.get(), &Node::Hooks::tensor, h.next_id++);
}

HookHandle Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const {
  const Edge edge = gradient_edge(*this);
  if (!edge || !edge.node->leaf)
    throw GradError("[register_post_accumulate_grad_hook] only leaves that require grad accumulate.");
  Node::Hooks& h = edge.node->make_hooks();
  h.accumulated.push_back({h.next_id, std::move(hook)});
  return removal(edge.node.get(), &Node::Hooks::accumulated, h.next_id++);
}

}  // namespace levin
