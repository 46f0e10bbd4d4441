#pragma once
// The base class of all layers and networks.
//
//   struct Net : nn::Module {
//     nn::Linear& fc1 = add<nn::Linear>("fc1", 784, 512);
//     nn::Linear& fc2 = add<nn::Linear>("fc2", 512, 10);
//     Tensor forward(const Tensor& x) override { return fc2(relu(fc1(flatten(x, 1)))); }
//   };
//   Net net;  Tensor y = net(x);
//
// A module with other arguments or results derives from nn::Layer, which gives its forward a call operator:
//
//   struct Denoiser : nn::Layer<Denoiser> {
//     Tensor forward(const Tensor& x, const Tensor& t) { ... }
//   };
//   Denoiser net;  Tensor y = net(x, t);
//
// The reasons for this form: LibTorch needs a nullable holder member, its registration in a constructor (which repeats
// the name three times), an Impl class behind a macro and a CRTP base for clone. MLX and PyTorch write the name once,
// `self.fc1 = Linear(784, 512)`, because Python can inspect the object. Here `add` creates the child on the heap, the
// parent owns it, and the member is a plain reference: it is never null, needs no holder, and cannot dangle while the
// parent lives, because children are never removed. Copying is deleted, since two networks would silently share
// weights (use nn::clone). Moving a whole module is safe, since its children and parameters keep their addresses.
// Assignment is deleted.
//
// Module cannot know the types of several arguments: LibTorch has no hooks and erases the call in AnyModule, and
// Flashlight passes vectors of variables everywhere. Layer is told the class and reads the types from its forward
// instead, so that programs write neither a macro nor a list, and a module of one tensor stays one virtual call. Where
// only a Module& is known, as in Sequential, call() passes lists of tensors.

#include <levin/core/owned_ptr.h>
#include <levin/core/side_by_side.h>
#include <levin/core/state_dict.h>

#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <typeinfo>

namespace levin::nn {

/// Options of load_state_dict.
struct LoadOptions {
  bool strict = true;  ///< missing and unexpected names are errors
};

/// The result of load_state_dict: names that it did not find, or whose values it converted.
struct LoadReport {
  std::vector<std::string> missing{};     ///< names that only the module has; empty with strict
  std::vector<std::string> unexpected{};  ///< names that only the state has; empty with strict
  std::vector<std::string> converted{};   ///< names whose floating dtypes differ; the module keeps its own
};

class BatchNorm;
class Module;

/// Says in the message of an error from below `module` in which of its descendants it arose:
/// "in layers.3.conv1 (Conv2d): [conv2d] ...". Calls of modules do so; call it to go on from there to a parent that
/// called them outside of its forward.
void add_origin(Error& error, const Module& module);

/// A function that a module calls around its forward or backward. It returns nothing, or the tensors that replace those
/// of its first list: one, or a std::vector<Tensor> of as many. An undefined tensor replaces none.
template <class... Lists>
class ModuleHook : public std::function<std::vector<Tensor>(Module&, const Lists&...)> {
 public:
  /// Takes a function (module, lists...) that returns nothing, a Tensor or a std::vector<Tensor>.
  template <std::invocable<Module&, const Lists&...> F>
  ModuleHook(F f)  // NOLINT: implicit
      : std::function<std::vector<Tensor>(Module&, const Lists&...)>(
            [f = std::move(f)](Module& m, const Lists&... lists) mutable -> std::vector<Tensor> {
              if constexpr (std::is_void_v<std::invoke_result_t<F&, Module&, const Lists&...>>)
                return f(m, lists...), std::vector<Tensor>();
              else if constexpr (std::is_convertible_v<std::invoke_result_t<F&, Module&, const Lists&...>, Tensor>)
                return {f(m, lists...)};
              else
                return f(m, lists...);
            }) {}
};

/// The base class of layers and networks: a tree of modules, each with named parameters (trained), buffers
/// (moved and saved, but not trained) and children. A module can be moved, but neither copied (see nn::clone) nor
/// assigned; children and parameters keep their addresses.
class Module {
 public:
  using PreHook = ModuleHook<std::vector<Tensor>>;                            ///< (module, inputs)
  using ForwardHook = ModuleHook<std::vector<Tensor>, std::vector<Tensor>>;   ///< (module, inputs, outputs)
  using BackwardHook = ModuleHook<std::vector<Tensor>, std::vector<Tensor>>;  ///< (module, grad_inputs, grad_outputs)

  Module();
  virtual ~Module();
  Module(Module&& other) noexcept;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module& operator=(Module&&) = delete;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"  // the forward of a Layer hides it by intent
  /// Computes the module's output. Call the module itself, which also calls the hooks. Throws ValueError in a module
  /// that does not override it, or whose own forward does not return one tensor for one.
  virtual Tensor forward(const Tensor& x);  // to return something else, derive from Layer and take `Tensor x`
#pragma GCC diagnostic pop
  /// Calls forward and the hooks. An Error that leaves them says in which descendant it arose.
  Tensor operator()(const Tensor& x) {
    try {
      return hooks_ ? forward_with_hooks(x) : forward(x);
    } catch (Error& e) {
      add_origin(e, *this);
      throw;
    }
  }
  /// Calls forward and the hooks of a module whose class is not known, with tensors for the first of its arguments, and
  /// returns the tensors of its result. Throws ValueError where forward takes another number of tensors.
  std::vector<Tensor> call(const std::vector<Tensor>& inputs);

  // Construction
  /// Creates a child and returns it; the child lives as long as this module. Throws ValueError for a name that is
  /// empty, is taken or contains a dot, as do register_parameter and register_buffer.
  template <std::derived_from<Module> M, class... Args>
  M& add(const std::string& name, Args&&... args) {
    auto child = make<M>(std::forward<Args>(args)...);
    M& result = *child;
    adopt(name, std::move(child));
    return result;
  }
  /// Creates a child with its options in braces at the end: add<nn::Conv2d>("conv1", 1, 16, 5, {.padding = 2}).
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
  /// Registers a trainable tensor and returns its place in this module. An undefined tensor stands for an absent
  /// parameter (no bias). `decoder.weight = encoder.weight` makes two modules share a parameter if their members are
  /// such references, as those of layers are; so does registering another module's parameter. State dicts then have it
  /// under both names.
  Parameter& register_parameter(const std::string& name, const Tensor& value);
  /// Makes a registered parameter the result of `compute`, before each call of this module and now: it is no parameter
  /// of the module any more and is not saved. `repeat` does the same to a copy of the module, for nn::clone. See
  /// parametrize.h for the functions that use this. Throws ValueError for a name that is not a parameter's.
  void derive_parameter(const std::string& name, std::function<Tensor()> compute,
                        std::function<void(Module& copy)> repeat);
  /// Makes nn::clone call `change` on the copy of this module, before it copies values, so that the copy gets the same
  /// parameters and buffers.
  void repeat_in_copies(std::function<void(Module& copy)> change);
  /// Registers a tensor that is saved (if persistent) and moved with the module, but not trained, and returns it. An
  /// undefined tensor stands for an absent buffer.
  Tensor register_buffer(const std::string& name, const Tensor& value, bool persistent = true);

  // Inspection
  /// Returns the parameters of this module and, with `recurse`, of its descendants, in the order of registration,
  /// parents first. Names are PyTorch's: "block.0.weight". A tensor that has two names appears once, under the first.
  /// Absent and derived parameters are left out.
  std::vector<Parameter> parameters(bool recurse = true) const;
  /// Returns the same with their names. With `remove_duplicate` off, a shared parameter appears under each of its
  /// names.
  std::vector<std::pair<std::string, Tensor>> named_parameters(bool recurse = true, bool remove_duplicate = true) const;
  /// Returns the buffers, persistent or not, of this module and, with `recurse`, of its descendants.
  std::vector<std::pair<std::string, Tensor>> named_buffers(bool recurse = true) const;
  /// Returns the direct children; they belong to this module.
  std::vector<std::pair<std::string, Module*>> named_children() const;
  /// Returns this module (named "") and all its descendants, parents first.
  std::vector<std::pair<std::string, Module*>> named_modules();
  std::vector<std::pair<std::string, const Module*>> named_modules() const;
  /// Returns the descendant of that name ("block.0"), or this module for ""; throws ValueError, which lists the
  /// existing names, if there is none.
  Module& get_submodule(const std::string& name);
  /// Number of elements of all parameters.
  int64_t parameter_count() const;
  /// Returns the device of the first parameter, or else of the first buffer; the CPU when there is neither.
  Device device() const;
  /// True for a new module and after train(), false after eval(). Layers such as dropout and batch normalization
  /// compute something else in evaluation.
  bool is_training() const { return training_; }
  /// True if forward takes one tensor and returns one, so that the module can be called through Module&.
  bool takes_one_tensor() const { return list_forward() == nullptr; }
  /// Returns the class name, without namespaces.
  virtual std::string type_name() const;
  /// Returns the arguments shown in the printed tree: "in_features=784, out_features=512, bias=True".
  virtual std::string extra_repr() const { return {}; }

  // Modification
  /// Switches this module and its descendants to training or to evaluation; returns this module.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  /// Moves and converts parameters, gradients and buffers in place, so that other handles to them see the change;
  /// returns this module. Only floating-point tensors change their dtype. Throws DTypeError for a dtype that is not
  /// floating, and DeviceError for a device that this machine or build lacks.
  Module& to(Device device);
  Module& to(DType dtype);
  Module& to(Device device, DType dtype);
  /// Calls f on every module, children before parents; returns this module.
  Module& apply(const std::function<void(Module&)>& f);
  /// Lets all parameters, or none, get gradients; returns this module.
  Module& requires_grad_(bool on = true);
  /// Removes the gradients of all parameters, or sets them to zeros where `set_to_none` is false.
  void zero_grad(bool set_to_none = true);

  // Hooks get the tensors among the inputs and outputs, in order, and may replace the inputs, the outputs, or the
  // gradients of the inputs. A gradient is undefined where its tensor requires none or does not influence the result.
  // Hooks run in the order of their registration until their handle removes them. They throw ValueError if they return
  // another number of tensors than they replace.
  HookHandle register_forward_pre_hook(PreHook hook);
  HookHandle register_forward_hook(ForwardHook hook);
  HookHandle register_full_backward_hook(BackwardHook hook);

  /// True once a hook was registered, also after its removal.
  bool has_hooks() const { return static_cast<bool>(hooks_); }
  /// Runs the hooks around one forward of a module that has hooks: fill `inputs`, call before(), compute `outputs` from
  /// `inputs` unless it returned false, and call after().
  class HookedCall {
   public:
    /// The module must outlive the object, and has_hooks() must be true.
    explicit HookedCall(Module& module);
    ~HookedCall();
    /// Calls the pre-hooks, which may replace inputs. False if one of them provided the outputs.
    bool before();
    /// Calls the forward hooks, which may replace outputs.
    void after();

    std::vector<Tensor> inputs, outputs;  ///< the tensors among the arguments and results of forward

   private:
    struct State;
    OwnedPtr<State> state_;
  };

  // State
  /// Returns parameters and persistent buffers in the order of registration, as detached handles to the same memory.
  StateDict state_dict() const;
  /// Copies the values of `state` into parameters and buffers, which keep their dtype: values of another floating dtype
  /// are converted and reported. On any other mismatch it throws one StateError that lists missing and unexpected
  /// names, shapes and dtypes, and changes nothing. One name of a shared parameter is enough.
  LoadReport load_state_dict(const StateDict& state, const LoadOptions& options = {});

  /// Returns this module as a BatchNorm, so that others can freeze, synchronize or recompute its running statistics;
  /// null for other modules.
  virtual BatchNorm* as_batch_norm() { return nullptr; }
  /// True for normalization layers, which stay in float32 where other parameters become float16.
  virtual bool is_normalization() const { return false; }

  /// Returns a new module constructed with the same arguments and initialized anew. Modules created by `add` remember
  /// their arguments, and layers know theirs; null for others.
  virtual std::unique_ptr<Module> fresh() const;

 protected:
  /// Creates a module that can repeat its construction if the arguments can be copied.
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
  /// Runs forward, without hooks, with tensors as arguments; null for modules whose forward takes one tensor.
  using ListForward = std::vector<Tensor> (*)(Module&, const std::vector<Tensor>& inputs);
  virtual ListForward list_forward() const { return nullptr; }
  /// Replaces x's values by those of forward(x), for activations that can; false for other modules.
  virtual bool forward_in_place(const Tensor& x);
  /// Takes over a child under this name. Throws ValueError as add().
  void adopt(const std::string& name, std::unique_ptr<Module> child);
  /// Returns child i, counted from 0 in the order of their addition; the index is not checked.
  Module& child(std::size_t i) const;
  /// Number of direct children.
  std::size_t child_count() const;

 private:
  friend class Cloner;
  friend class Sequential;
  using Factory = std::function<std::unique_ptr<Module>()>;
  struct Hooks;
  struct NamedParameter {
    std::string name;
    OwnedPtr<Parameter> parameter;
    std::function<Tensor()> compute{};  // empty unless it is derived from others
  };
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

  std::vector<NamedParameter> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<Child> children_;
  std::vector<std::function<void(Module&)>> derivations_;  // those that a copy repeats
  Factory factory_;
  OwnedPtr<Hooks> hooks_;
  bool training_ = true;
};

namespace detail {
[[noreturn]] void refuse_inputs(const Module& module, std::size_t given);
[[noreturn]] void refuse_outputs(const Module& module, std::size_t given);
}  // namespace detail

/// Adds the missing names of shared parameters to a state that has at least one of each: some formats store shared
/// tensors once.
StateDict with_shared_parameters(const Module& module, StateDict state);

/// Copies the state of modules for nn::clone, and keeps random numbers from being used up by the construction of
/// copies.
class Cloner {
 public:
  /// While the object lives, this thread draws from a copy of its default generator.
  Cloner() = default;
  /// Copies values, requires_grad, training flags, devices and dtypes from one tree to another, with memory of their
  /// own; throws ValueError if the trees differ.
  static void copy_state(const Module& from, Module& to);

 private:
  Generator copy_ = default_generator();
  DefaultGeneratorGuard guard_{copy_};
};

/// Returns a deep copy of the module's own type: `Net copy = nn::clone(net);`. Gradients and hooks are not copied, and
/// parameters that modules share are shared in the copy. If the constructor takes arguments and the module was not
/// created by `add`, pass them again: `nn::clone(net, 784, 10)`.
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

/// Returns or writes PyTorch's printed tree, with the number of parameters after every module that has some.
std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace levin::nn
