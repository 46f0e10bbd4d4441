#pragma once
// Modules that contain lists of modules.

#include <levin/nn/layer.h>

namespace levin::nn {

/// Calls its children one after the other; they are named "0", "1", ... A child that returns several tensors must be
/// followed by one that takes as many; the first takes one, and the last returns one. Throws ValueError otherwise.
///
///   nn::Sequential net(nn::Conv2d(1, 16, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten());
///
/// Children may be of type Sequential. To nest a single one, call push_back: Sequential(Sequential(...)) moves it.
class Sequential : public Module {
 public:
  Sequential() = default;
  /// Takes over modules of any classes, which are temporaries or moved; they keep their parameters' identity.
  template <class... M>
  requires(sizeof...(M) > 0 && (std::derived_from<M, Module> && ...) &&
           !(sizeof...(M) == 1 && (std::same_as<M, Sequential> && ...))) explicit Sequential(M&&... modules) {
    (push_back(std::move(modules)), ...);
  }
  Sequential(Sequential&&) = default;

  /// Appends a temporary or moved module.
  template <std::derived_from<Module> M>
  Sequential& push_back(M&& module) {
    append(own(std::move(module)));
    return *this;
  }
  /// Number of children.
  std::size_t size() const { return child_count(); }
  /// Throws IndexError for an index of size() or more.
  Module& operator[](std::size_t i) const;
  Tensor forward(const Tensor& x) override;
  /// Passes tensors through the children first..last - 1 and returns those that the last of them returned. Throws
  /// ValueError where a child takes another number of tensors.
  std::vector<Tensor> call_range(std::size_t first, std::size_t last, std::vector<Tensor> tensors) const;
  std::unique_ptr<Module> fresh() const override;

 private:
  void append(std::unique_ptr<Module> module);

  bool passes_lists_ = false;  // whether a child has other inputs or outputs than one tensor
};

/// A list of children of one type, named "0", "1", ...; it has no forward; the parent calls the children.
///
///   nn::ModuleList<Block>& blocks = add<nn::ModuleList<Block>>("blocks");
///   for (int i = 0; i < 6; ++i) blocks.append(width);
template <std::derived_from<Module> M>
class ModuleList : public Module {
 public:
  ModuleList() = default;
  /// Constructs a child from these arguments and appends it.
  template <class... Args>
  M& append(Args&&... args) {
    return add<M>(std::to_string(size()), std::forward<Args>(args)...);
  }
  /// Number of children.
  std::size_t size() const { return child_count(); }
  /// The caller must pass an index below size(); it is not checked.
  M& operator[](std::size_t i) const { return static_cast<M&>(child(i)); }

  /// A forward iterator over the children; appending a child invalidates none.
  class Iterator {
   public:
    /// Points to child i of `list`, which must outlive it.
    Iterator(const ModuleList& list, std::size_t i) : list_(&list), i_(i) {}
    M& operator*() const { return (*list_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.i_ == b.i_; }

   private:
    const ModuleList* list_;
    std::size_t i_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  std::unique_ptr<Module> fresh() const override {
    auto copy = std::make_unique<ModuleList>();
    for (const M& m : *this) {
      auto child = m.fresh();
      if (!child) return nullptr;
      copy->adopt(std::to_string(copy->size()), std::move(child));
    }
    return copy;
  }
};

/// Children of one type by name; it has no forward.
///
///   nn::ModuleDict<nn::Linear>& heads = add<nn::ModuleDict<nn::Linear>>("heads");
///   heads.append("classes", 64, 10);
///   Tensor y = heads["classes"](x);
template <std::derived_from<Module> M>
class ModuleDict : public Module {
 public:
  ModuleDict() = default;
  /// Constructs a child from these arguments under this name. Throws ValueError for a name that is empty, is taken or
  /// contains a dot.
  template <class... Args>
  M& append(const std::string& name, Args&&... args) {
    return add<M>(name, std::forward<Args>(args)...);
  }
  /// Number of children.
  std::size_t size() const { return child_count(); }
  /// True if there is a child of this name.
  bool contains(const std::string& name) const {
    for (const auto& [key, child] : named_children())
      if (key == name) return true;
    return false;
  }
  /// Returns the child of this name; throws ValueError, which lists the existing names, if there is none.
  M& operator[](const std::string& name) { return static_cast<M&>(get_submodule(name)); }

  std::unique_ptr<Module> fresh() const override {
    auto copy = std::make_unique<ModuleDict>();
    for (const auto& [name, module] : named_children()) {
      auto child = module->fresh();
      if (!child) return nullptr;
      copy->adopt(name, std::move(child));
    }
    return copy;
  }
};

/// Parameters by name; it has no forward.
class ParameterDict : public Module {
 public:
  ParameterDict() = default;
  /// Adds a parameter, see Module::register_parameter, and returns its place. Throws ValueError for a name that is
  /// empty, is taken or contains a dot.
  Parameter& append(const std::string& name, const Tensor& value);
  /// Number of parameters.
  std::size_t size() const { return places_.size(); }
  /// True if there is a parameter of this name.
  bool contains(const std::string& name) const;
  /// Returns the parameter of this name; throws ValueError, which lists the existing names, if there is none.
  Parameter& operator[](const std::string& name) const;
  std::unique_ptr<Module> fresh() const override;

 private:
  std::vector<std::string> names_;
  std::vector<Parameter*> places_;
};

/// A function as a layer of a Sequential: nn::Lambda([](const Tensor& x) { return x.mean(1); }).
class Lambda : public Layer<Lambda> {
 public:
  /// Throws ValueError for an empty function. Clones of the layer hold copies of the function.
  explicit Lambda(std::function<Tensor(const Tensor&)> f);
  Tensor forward(const Tensor& x) override { return function_(x); }
  auto with_arguments(auto construct) const { return construct(function_); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

/// Parameters named "0", "1", ...; it has no forward.
class ParameterList : public Module {
 public:
  ParameterList() = default;
  /// Appends each of the values.
  explicit ParameterList(const std::vector<Tensor>& values);
  /// Adds a parameter at the end, see Module::register_parameter, and returns its place.
  Parameter& append(const Tensor& value);
  /// Number of parameters.
  std::size_t size() const { return places_.size(); }
  /// Throws IndexError for an index of size() or more.
  Parameter& operator[](std::size_t i) const;
  std::unique_ptr<Module> fresh() const override;

 private:
  std::vector<Parameter*> places_;
};

}  // namespace levin::nn
