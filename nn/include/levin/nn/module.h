#pragma once
// Base of all layers and networks.
//
//   struct Net : nn::Module {
//     nn::Linear& fc1 = add<nn::Linear>("fc1", 784, 512);
//     nn::Linear& fc2 = add<nn::Linear>("fc2", 512, 10);
//     Tensor forward(const Tensor& x) override { return fc2(relu(fc1(flatten(x, 1)))); }
//   };
//   Net net;  Tensor y = net(x);
//
// Why this form. LibTorch needs a null holder member, its registration in a constructor (the name stands three times),
// an Impl class behind a macro and a CRTP base for clone; MLX and PyTorch write `self.fc1 = Linear(784, 512)`, the name
// once, because Python can look into the object. Here `add` makes the child on the heap, the parent owns it, and the
// member is a plain reference: it is never null, needs no holder, and cannot dangle while the parent lives, because
// children are never removed. Copying is deleted (two networks would share weights unnoticed: use nn::clone); moving a
// whole module is safe, since its children keep their addresses; assignment is deleted.

#include <levin/core/owned_ptr.h>
#include <levin/core/side_by_side.h>
#include <levin/core/state_dict.h>

#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <typeinfo>

namespace levin::nn {

struct LoadOptions {
  bool strict = true;    ///< missing and unexpected names are errors
  bool convert = false;  ///< another dtype is converted instead of refused
};

/// Keys that load_state_dict could not match; with strict both are empty.
struct LoadReport {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

class BatchNorm;

class Module {
 public:
  using PreHook = std::function<Tensor(Module&, const Tensor& input)>;
  using ForwardHook = std::function<Tensor(Module&, const Tensor& input, const Tensor& output)>;
  using BackwardHook = std::function<Tensor(Module&, const Tensor& grad_input, const Tensor& grad_output)>;

  Module();
  virtual ~Module();
  Module(Module&& other) noexcept;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module& operator=(Module&&) = delete;

  /// Computes the module's output. A module whose forward takes other arguments declares its own and is called by
  /// `net.forward(a, b)`; hooks belong to this form.
  virtual Tensor forward(const Tensor& x);
  /// forward with the hooks round it.
  Tensor operator()(const Tensor& x) { return hooks_ ? forward_with_hooks(x) : forward(x); }

  // Building
  /// Makes a child and returns it; the child lives as long as this module. Names are not empty, without dots, unique.
  template <std::derived_from<Module> M, class... Args>
  M& add(const std::string& name, Args&&... args) {
    auto child = make<M>(std::forward<Args>(args)...);
    M& result = *child;
    adopt(name, std::move(child));
    return result;
  }
  /// The same with the module's options in braces at the end: add<nn::Conv2d>("conv1", 1, 16, 5, {.padding = 2}).
  template <std::derived_from<Module> M>
  M& add(const std::string& name, const typename M::Options& options) {
    return add<M, const typename M::Options&>(name, options);
  }
  template <std::derived_from<Module> M, class A>
  M& add(const std::string& name, const A& a, const typename M::Options& options) {
    return add<M, const A&, const typename M::Options&>(name, a, options);
  }
  template <std::derived_from<Module> M, class A, class B>
  M& add(const std::string& name, const A& a, const B& b, const typename M::Options& options) {
    return add<M, const A&, const B&, const typename M::Options&>(name, a, b, options);
  }
  template <std::derived_from<Module> M, class A, class B, class C>
  M& add(const std::string& name, const A& a, const B& b, const C& c, const typename M::Options& options) {
    return add<M, const A&, const B&, const C&, const typename M::Options&>(name, a, b, c, options);
  }
  /// Registers a trainable tensor and returns it. Undefined stands for a parameter that is absent (no bias).
  Tensor register_parameter(const std::string& name, const Tensor& value);
  /// Registers a tensor that is saved (if persistent) and moved, but not trained.
  Tensor register_buffer(const std::string& name, const Tensor& value, bool persistent = true);

  // Looking in. Names are PyTorch's: "block.0.weight". A tensor that has two names appears once, under the first.
  std::vector<Parameter> parameters(bool recurse = true) const;
  std::vector<std::pair<std::string, Tensor>> named_parameters(bool recurse = true) const;
  std::vector<std::pair<std::string, Tensor>> named_buffers(bool recurse = true) const;
  std::vector<std::pair<std::string, Module*>> named_children() const;
  /// This module (named "") and all below, parents first.
  std::vector<std::pair<std::string, Module*>> named_modules();
  std::vector<std::pair<std::string, const Module*>> named_modules() const;
  /// The child, or deeper module, of that name; throws ValueError with the names there are.
  Module& get_submodule(const std::string& name);
  int64_t parameter_count() const;
  /// Of the first parameter or buffer; the CPU when there is none.
  Device device() const;
  bool is_training() const { return training_; }
  /// The class name, without namespaces.
  virtual std::string type_name() const;
  /// Arguments in the printed tree: "in_features=784, out_features=512, bias=True".
  virtual std::string extra_repr() const { return {}; }

  // Changing
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  /// Moves and converts parameters, gradients and buffers where they are: handles elsewhere see it. Only floating
  /// tensors change their dtype.
  Module& to(Device device);
  Module& to(DType dtype);
  Module& to(Device device, DType dtype);
  /// Calls f on every module, children before parents.
  Module& apply(const std::function<void(Module&)>& f);
  Module& requires_grad_(bool on = true);
  void zero_grad(bool set_to_none = true);

  // Hooks. A defined result replaces the input, the output, the gradient of the input. Inputs that need no gradient
  // give an undefined grad_input.
  HookHandle register_forward_pre_hook(PreHook hook);
  HookHandle register_forward_hook(ForwardHook hook);
  HookHandle register_full_backward_hook(BackwardHook hook);

  // State
  /// Parameters and persistent buffers, detached handles on the same memory, in the order of registration.
  StateDict state_dict() const;
  /// Copies values in. All or nothing: on any difference one StateError lists missing and unexpected names, shapes
  /// and dtypes, and nothing has changed.
  LoadReport load_state_dict(const StateDict& state, const LoadOptions& options = {});

  /// This module as a batch normalisation, whose running statistics others refresh, freeze or share; null for others.
  virtual BatchNorm* as_batch_norm() { return nullptr; }
  /// True for layers that normalise: they stay in float32 where other parameters become float16.
  virtual bool is_normalization() const { return false; }

  /// A new module built with the same arguments; values are those of its initialisers. Modules made by `add` remember
  /// their arguments, layers know theirs; null for others.
  virtual std::unique_ptr<Module> fresh() const;

 protected:
  /// Makes a module that can repeat its construction, where the arguments can be copied.
  template <class M, class... Args>
  static std::unique_ptr<M> make(Args&&... args) {
    if constexpr ((std::copy_constructible<std::decay_t<Args>> && ...)) {
      Factory again = [args...]() -> std::unique_ptr<Module> { return std::make_unique<M>(args...); };
      auto m = std::make_unique<M>(std::forward<Args>(args)...);
      static_cast<Module&>(*m).factory_ = std::move(again);
      return m;
    } else {
      return std::make_unique<M>(std::forward<Args>(args)...);
    }
  }
  /// Moves a temporary to the heap.
  template <class M>
  static std::unique_ptr<Module> own(M&& module) {
    auto owned = std::make_unique<M>(std::move(module));
    if constexpr (std::default_initializable<M>) {
      Factory& factory = static_cast<Module&>(*owned).factory_;
      if (!factory) factory = [] { return std::make_unique<M>(); };
    }
    return owned;
  }
  void adopt(const std::string& name, std::unique_ptr<Module> child);
  Module& child(std::size_t i) const;
  std::size_t child_count() const;

 private:
  friend class Cloner;
  using Factory = std::function<std::unique_ptr<Module>()>;
  struct Hooks;
  struct Child {
    std::string name;
    OwnedPtr<Module> module;
  };
  struct Buffer {
    std::string name;
    Tensor tensor;
    bool persistent;
  };

  Tensor forward_with_hooks(const Tensor& x);
  Hooks& make_hooks();
  void check_name(const std::string& name) const;
  template <class F>
  void visit(const std::string& prefix, const F& f) const;

  std::vector<std::pair<std::string, Tensor>> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<Child> children_;
  Factory factory_;
  OwnedPtr<Hooks> hooks_;
  bool training_ = true;
};

/// Constructs modules and copies their state for nn::clone.
class Cloner {
 public:
  /// While it lives, this thread draws from a copy of its default generator.
  Cloner() = default;
  /// Values, requires_grad, training flags, devices and dtypes; throws ValueError where the trees differ.
  static void copy_state(const Module& from, Module& to);

 private:
  Generator copy_ = default_generator();
  DefaultGeneratorGuard guard_{copy_};
};

/// A deep copy of the module's own type: `Net copy = nn::clone(net);`. Gradients and hooks are not copied. A module
/// whose constructor takes arguments, and which was not made by `add`, is given them again: `nn::clone(net, 784, 10)`.
template <std::derived_from<Module> M, class... Args>
M clone(const M& module, const Args&... args) {
  if (typeid(module) != typeid(M))
    throw ValueError("[clone] the module is a " + module.type_name() +
                     ", known here by a base class. Clone it by its own type.");
  Cloner cloner;
  if constexpr (sizeof...(Args) == 0) {
    if (const auto copy = module.fresh()) {
      Cloner::copy_state(module, *copy);
      return std::move(static_cast<M&>(*copy));
    }
  }
  if constexpr (std::is_constructible_v<M, const Args&...>) {
    M copy(args...);
    Cloner::copy_state(module, copy);
    return copy;
  }
  throw ValueError("[clone] a " + module.type_name() +
                   " needs its constructor's arguments: nn::clone(module, arguments...).");
}

/// PyTorch's tree, with the number of parameters behind every module that has some.
std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace levin::nn
