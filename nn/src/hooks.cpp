// Hooks of modules, and the move constructor and destructor of Module.

#include <levin/nn/forward_result.h>
#include <levin/nn/module.h>

#include <map>

namespace levin::nn {

/// The lists are shared with the handles and with the graphs of earlier forwards, which may outlive the module; `owner`
/// is null then.
struct Module::Hooks {
  struct Lists {
    Module* owner;
    int next_id = 0;
    std::map<int, PreHook> before;
    std::map<int, ForwardHook> after;
    std::map<int, BackwardHook> backward;
  };
  explicit Hooks(Module& m) : lists(std::make_shared<Lists>(Lists{&m, 0, {}, {}, {}})) {}
  ~Hooks() { lists->owner = nullptr; }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  template <class F>
  HookHandle add(std::map<int, F> Lists::*list, F hook) {
    const int id = lists->next_id++;
    ((*lists).*list).emplace(id, std::move(hook));
    return HookHandle([weak = std::weak_ptr(lists), list, id] {
      if (const auto alive = weak.lock()) ((*alive).*list).erase(id);
    });
  }

  std::shared_ptr<Lists> lists;
};

Module::Module() = default;

// Destroys the descendants without recursion, since trees may be too deep for the stack. Children outlive the
// destructor of their parent's own class.
Module::~Module() {
  auto waiting = std::move(children_);
  while (!waiting.empty()) {
    const auto last = std::move(waiting.back().module);
    waiting.pop_back();
    for (auto& child : last->children_) waiting.push_back(std::move(child));
    last->children_.clear();
  }
}

Module::Module(Module&& other) noexcept
    : parameters_(std::move(other.parameters_)),
      buffers_(std::move(other.buffers_)),
      children_(std::move(other.children_)),
      factory_(std::move(other.factory_)),
      hooks_(std::move(other.hooks_)),
      training_(other.training_) {
  if (hooks_) hooks_->lists->owner = this;
}

Module::Hooks& Module::make_hooks() {
  if (!hooks_) hooks_ = std::make_unique<Hooks>(*this);
  return *hooks_;
}

HookHandle Module::register_forward_pre_hook(PreHook hook) {
  return make_hooks().add(&Hooks::Lists::before, std::move(hook));
}
HookHandle Module::register_forward_hook(ForwardHook hook) {
  return make_hooks().add(&Hooks::Lists::after, std::move(hook));
}
HookHandle Module::register_full_backward_hook(BackwardHook hook) {
  return make_hooks().add(&Hooks::Lists::backward, std::move(hook));
}

Tensor Module::forward_with_hooks(const Tensor& x) {
  const std::shared_ptr<Hooks::Lists> lists = hooks_->lists;
  Tensor input = x, output;
  try {
    for (const auto& [id, hook] : std::map(lists->before))
      if (Tensor other = hook(*this, input); other.defined()) input = other;
  } catch (const ForwardResult& given) {
    output = given.output;
  }

  // The gradients of these two views are the complete grad_input and grad_output, whatever the module computes.
  const bool watch = !lists->backward.empty();
  const auto grad_output = std::make_shared<Tensor>();
  if (watch && input.requires_grad()) {
    input = input.view(input.sizes());
    input.register_hook([lists, grad_output](const Tensor& g) {
      Tensor grad_input = g;
      for (const auto& [id, hook] : std::map(lists->backward))
        if (lists->owner)
          if (Tensor other = hook(*lists->owner, grad_input, *grad_output); other.defined()) grad_input = other;
      *grad_output = Tensor();
      return grad_input;
    });
  }

  if (!output.defined()) output = forward(input);
  for (const auto& [id, hook] : std::map(lists->after))
    if (Tensor other = hook(*this, input, output); other.defined()) output = other;

  if (watch && output.requires_grad()) {
    output = output.view(output.sizes());
    const bool alone = !input.requires_grad();
    output.register_hook([lists, grad_output, alone](const Tensor& g) {
      if (!alone) *grad_output = g;
      if (alone && lists->owner)
        for (const auto& [id, hook] : std::map(lists->backward)) hook(*lists->owner, Tensor(), g);
      return Tensor();
    });
  }
  return output;
}

}  // namespace levin::nn
