#pragma once
// The data that autograd attaches to a tensor.

#include <levin/autograd/node.h>
#include <levin/autograd/row_gradient.h>

namespace levin {

/// The base of a view.
struct ViewInfo {
  Tensor base;                 ///< never a view itself
  std::uint32_t version = 0;   ///< version of the storage when the view's own history was created
  bool recorded = true;        ///< false for a view created while recording was off
};

struct AutogradMeta final : AutogradData, Pooled<AutogradMeta> {
  ~AutogradMeta() override;
  /// Describes the tensor as PyTorch prints it: "grad_fn=<mul>" or "requires_grad=True".
  std::string describe() const override {
    if (grad_fn) return std::string("grad_fn=<") + grad_fn->name() + ">";
    return requires_grad ? "requires_grad=True" : "";
  }

  Tensor grad;
  NodePtr grad_fn;
  NodePtr accumulator;         ///< of a leaf; points to the leaf by a raw pointer, so there is no cycle
  std::uint32_t output = 0;    ///< index of this tensor among the outputs of grad_fn
  bool requires_grad = false;  ///< of a leaf
  bool retains_grad = false;
  std::unique_ptr<ViewInfo> view;
  std::unique_ptr<RowGradient> rows;  ///< of a leaf, then `grad` is undefined; or of a carrier (row_gradients.h)
};

inline AutogradMeta* meta_or_null(const Tensor& t) {
  return t.defined() ? static_cast<AutogradMeta*>(t.impl()->autograd.get()) : nullptr;
}
AutogradMeta& make_meta(const Tensor& t);

/// Returns the node of a non-leaf, rebuilt first if the view's base was modified in place since.
const NodePtr& current_grad_fn(const Tensor& t, AutogradMeta& meta);

/// The tensors that the forward of a custom Function marked.
struct Context::Marks {
  std::vector<Tensor> dirty, constant;
  bool materialize = true;
};

/// Gives x, whose memory has just taken result's values, the history of result; of a view, its base takes it.
void adopt_history(const char* name, const Tensor& x, const Tensor& result);
/// Makes `t` output number `output` of `node`.
void set_history(const Tensor& t, const NodePtr& node, std::uint32_t output);

/// Hooks that run around a node's computation, and the non-leaf tensors that retain their gradients.
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
  std::vector<std::pair<std::uint32_t, TensorImpl*>> retained;  ///< output number and tensor
  int next_id = 0;
};

}  // namespace levin
