#pragma once
// The data that autograd attaches to a tensor.

#include <levin/autograd/node.h>

namespace levin {

/// Where a view's memory belongs.
struct ViewInfo {
  Tensor base;                 ///< not a view itself
  std::uint32_t version = 0;   ///< of the storage when the view's own history was made
  bool recorded = true;        ///< false for a view made while recording was off
};

struct AutogradMeta final : AutogradData, Pooled<AutogradMeta> {
  ~AutogradMeta() override;
  /// As PyTorch prints it: "grad_fn=<mul>" or "requires_grad=True".
  std::string describe() const override {
    if (grad_fn) return std::string("grad_fn=<") + grad_fn->name() + ">";
    return requires_grad ? "requires_grad=True" : "";
  }

  Tensor grad;
  NodePtr grad_fn;
  NodePtr accumulator;         ///< of a leaf; knows the leaf by a plain pointer, so there is no cycle
  std::uint32_t output = 0;    ///< which output of grad_fn this tensor is
  bool requires_grad = false;  ///< of a leaf
  bool retains_grad = false;
  std::unique_ptr<ViewInfo> view;
};

inline AutogradMeta* meta_or_null(const Tensor& t) {
  return t.defined() ? static_cast<AutogradMeta*>(t.impl()->autograd.get()) : nullptr;
}
AutogradMeta& make_meta(const Tensor& t);

/// The node of a non-leaf, remade first when a base of the view was edited in place since.
const NodePtr& current_grad_fn(const Tensor& t, AutogradMeta& meta);

/// Makes `t` output number `output` of `node`.
void set_history(const Tensor& t, const NodePtr& node, std::uint32_t output);

/// Functions that run around a node's computation, and what keeps a non-leaf's gradient.
struct Node::Hooks {
  template <class F>
  struct Entry {
    int id;
    F call;
  };
  struct TensorHook {
    int id;
    std::uint32_t output;
    std::function<Tensor(const Tensor&)> call;
  };
  std::vector<TensorHook> tensor;
  std::vector<Entry<std::function<void(std::vector<Tensor>&)>>> before;
  std::vector<Entry<std::function<void(std::vector<Tensor>&, const std::vector<Tensor>&)>>> after;
  std::vector<Entry<std::function<void(const Tensor&)>>> accumulated;
  std::vector<std::pair<std::uint32_t, TensorImpl*>> retained;  ///< output number, tensor
  int next_id = 0;
};

}  // namespace levin
