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
  template <class... M>
  requires(sizeof...(M) > 0 && (std::derived_from<M, Module> && ...) &&
           !(sizeof...(M) == 1 && (std::same_as<M, Sequential> && ...))) explicit Sequential(M&&... modules) {
    (push_back(std::move(modules)), ...);
  }
  Sequential(Sequential&&) = default;

  /// Appends a temporary.
  template <std::derived_from<Module> M>
  Sequential& push_back(M&& module) {
    append(own(std::move(module)));
    return *this;
  }
  std::size_t size() const { return child_count(); }
  Module& operator[](std::size_t i) const;
  Tensor forward(const Tensor& x) override;
  /// Passes tensors through the children first..last - 1 and returns those that the last of them returned.
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
  std::size_t size() const { return child_count(); }
  M& operator[](std::size_t i) const { return static_cast<M&>(child(i)); }

  class Iterator {
   public:
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
  /// Constructs a child from these arguments under this name, which must be new and without dots.
  template <class... Args>
  M& append(const std::string& name, Args&&... args) {
    return add<M>(name, std::forward<Args>(args)...);
  }
  std::size_t size() const { return child_count(); }
  bool contains(const std::string& name) const {
    for (const auto& [key, child] : named_children())
      if (key == name) return true;
    return false;
  }
  /// Throws ValueError that lists the existing names.
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
  /// Adds a parameter under a new name without dots.
  Parameter& append(const std::string& name, const Tensor& value);
  std::size_t size() const { return places_.size(); }
  bool contains(const std::string& name) const;
  /// Throws ValueError that lists the existing names.
  Parameter& operator[](const std::string& name) const;
  std::unique_ptr<Module> fresh() const override;

 private:
  std::vector<std::string> names_;
  std::vector<Parameter*> places_;
};

/// A function as a layer of a Sequential: nn::Lambda([](const Tensor& x) { return x.mean(1); }).
class Lambda : public Layer<Lambda> {
 public:
  explicit Lambda(std::function<Tensor(const Tensor&)> f);
  Tensor forward(const Tensor& x) override { return function_(x); }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(function_);
  }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

/// Parameters named "0", "1", ...; it has no forward.
class ParameterList : public Module {
 public:
  ParameterList() = default;
  explicit ParameterList(const std::vector<Tensor>& values);
  Parameter& append(const Tensor& value);
  std::size_t size() const { return places_.size(); }
  Parameter& operator[](std::size_t i) const;
  std::unique_ptr<Module> fresh() const override;

 private:
  std::vector<Parameter*> places_;
};

}  // namespace levin::nn
