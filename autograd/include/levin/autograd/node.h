#pragma once
// The gradient graph. A node represents one recorded operation: where its gradients go, the tensors it saved, and the
// function that computes the gradients. Backward functions are plain functions without captures, so that a node cannot
// hold a tensor that holds the node: all state goes through the context.

#include <levin/autograd/modes.h>
#include <levin/core/inline_vector.h>
#include <levin/core/owned_ptr.h>
#include <levin/core/tensor.h>

#include <cstring>
#include <memory>
#include <typeinfo>

namespace levin {

class Node;
struct PackedTensor;
/// A share of a node; tensors and later nodes keep it alive.
using NodePtr = IntrusivePtr<Node>;

/// Gradients with respect to the inputs of an operation, in their order; an undefined tensor means none.
using Grads = InlineVector<Tensor, 3>;

/// The `sizes`, `dtype` and `device` of a tensor that took part in an operation; its gradient must match them.
struct TensorMeta {
  Shape sizes;
  DType dtype = DType::f32;
  Device device;
};

/// Destination of a gradient: output number `output` of the operation `node`.
struct Edge {
  NodePtr node;
  std::uint32_t output = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

/// Values that an operation keeps for its backward. Calls that keep something can be chained: c.save(x).set(axis).
class Context {
 public:
  /// Saves inputs for backward (undefined tensors are allowed). If a saved input is changed in place later, backward
  /// throws. Does nothing where the operation is not recorded, as under no_grad and inference_mode.
  template <class... T>
  Context& save(const T&... tensors) {
    (save_one(tensors, false, 0), ...);
    return *this;
  }
  /// Saves output number `index` of this operation without creating a reference cycle.
  Context& save_output(const Tensor& output, int index = 0) {
    save_one(output, true, index);
    return *this;
  }
  /// Returns the i-th saved tensor with its place in the graph, so that gradients of gradients work. Throws GradError
  /// if it was changed in place, or was already released by an earlier backward.
  Tensor saved(int i) const;
  /// Returns the number of saved tensors.
  int saved_count() const { return saved_.size(); }

  /// For Function::forward: these inputs were changed in place and are among the results.
  void mark_dirty(std::initializer_list<Tensor> inputs);
  /// For Function::forward: these results have no gradient.
  void mark_non_differentiable(std::initializer_list<Tensor> outputs);
  /// For Function::forward: whether backward gets zeros for results that nothing used (it does by default), or
  /// undefined tensors.
  void set_materialize_grads(bool on);

  /// Calls f with each saved tensor that is not a leaf; saved_tensors_hooks hold what they packed.
  template <class F>
  void for_each_saved(const F& f) const {
    for (const Saved& s : saved_)
      if (s.tensor.defined() && !s.is_leaf) f(s.tensor);
  }

  struct Marks;

  /// Stores one plain value (sizes, options). This is cheap for trivially copyable types of up to 160 bytes.
  template <class T>
  Context& set(const T& value) {
    if constexpr (std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(inline_value_)) {
      std::memcpy(inline_value_, &value, sizeof(T));
    } else {
      heap_value_ = std::make_shared<T>(value);
    }
    return *this;
  }
  /// Returns the value of set(); T must be its type, which is not checked.
  template <class T>
  const T& get() const {
    if constexpr (std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(inline_value_)) {
      return *reinterpret_cast<const T*>(inline_value_);
    } else {
      return *static_cast<const T*>(heap_value_.get());
    }
  }

  /// Returns the shape, type and device of input i.
  const TensorMeta& input(int i) const;
  /// True if a gradient for input i is needed; the others may stay undefined.
  virtual bool needs(int i) const = 0;

 protected:
  Context() = default;
  ~Context() = default;
  /// Frees what was saved, after which saved() throws.
  void release_saved();

  /// A saved tensor.
  struct Saved {
    Tensor tensor;                  ///< the leaf itself, or a detached alias
    NodePtr grad_fn;                ///< set if the saved tensor is an input that is not a leaf
    std::uint32_t output = 0;       ///< its number among the outputs of grad_fn, or of this operation
    std::uint32_t version = 0;      ///< Tensor::version() at the time of saving
    bool is_output = false;         ///< an output of this operation
    bool is_leaf = false;           ///< a leaf that requires grad, whose memory lives as long as it does
    OwnedPtr<PackedTensor> packed;  ///< instead of the tensor, under saved_tensors_hooks
  };
  /// Saves one tensor; `index` is its number among the outputs if is_output.
  void save_one(const Tensor& t, bool is_output, int index);
  /// Returns the marks, which are made at the first call.
  Marks& own_marks();

  InlineVector<Saved, 3> saved_;
  bool released_ = false;
  bool saves_ = true;
  OwnedPtr<Marks> marks_;

 private:
  alignas(16) std::byte inline_value_[160];
  std::shared_ptr<void> heap_value_;
};

/// Computes the gradients of the inputs from those of the outputs. The first form is for operations with one output; in
/// the second form, the gradient of an unused output is undefined.
using BackwardFn = Grads (*)(Context&, const Tensor& grad);
using MultiBackwardFn = Grads (*)(Context&, std::span<const Tensor> grads);

/// A recorded operation, or the accumulator of a leaf's gradient.
class Node final : public RefCounted, public Context, public Pooled<Node> {
 public:
  /// `name` is that of the operation and has to stay valid, as a string literal does.
  explicit Node(const char* name);
  ~Node();

  /// Returns the operation's name: "mul".
  const char* name() const { return name_; }
  /// Returns the number of nodes that the process made before this one.
  std::uint64_t sequence() const { return sequence_; }

  bool needs(int i) const override { return i < edges.size() && edges[i] && (i >= 64 || (skipped_ >> i & 1) == 0); }
  /// Sets, as bits, the inputs whose gradients are not needed; each pass sets them before the node computes.
  void skip(std::uint64_t places) { skipped_ = places; }

  /// Registers a hook that is called with the gradients of the outputs before the node computes; it may replace them in
  /// place.
  HookHandle register_prehook(std::function<void(std::vector<Tensor>&)> hook);
  /// Registers a hook that is called with the computed gradients of the inputs and those of the outputs; it may replace
  /// the former in place.
  HookHandle register_posthook(
      std::function<void(std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs)> hook);

  // Used by the engine and by record().
  InlineVector<Edge, 3> edges;               ///< one per input
  InlineVector<TensorMeta, 3> inputs;        ///< one per input
  InlineVector<TensorMeta, 1> outputs;       ///< one per output
  BackwardFn backward = nullptr;             ///< for one output; either this or the next is set
  MultiBackwardFn multi_backward = nullptr;  ///< for several outputs
  bool accumulates = false;                  ///< adds to a leaf's grad() instead of computing gradients
  TensorImpl* leaf = nullptr;                ///< the leaf of an accumulator, null once it is destroyed

  struct Hooks;
  OwnedPtr<Hooks> hooks;  ///< null without any
  /// Returns the hooks, which are made at the first call.
  Hooks& make_hooks();
  /// Returns the marks of a custom Function; null without any.
  const Marks* marks() const { return marks_.get(); }
  /// Releases the marked tensors, which would hold the node.
  void forget_marked();
  /// Frees what was saved, after which saved() throws.
  void release() { release_saved(); }
  /// Lets save() do nothing.
  void save_nothing() { saves_ = false; }

 private:
  const char* name_;
  std::uint64_t sequence_;
  std::uint64_t skipped_ = 0;
};

/// Returns the node that computed `t`; null for leaves.
NodePtr grad_fn(const Tensor& t);
/// Returns the destination of the gradient of `t`: its node, or the accumulator of a leaf that requires grad, or none.
Edge gradient_edge(const Tensor& t);

}  // namespace levin
