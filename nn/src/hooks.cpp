// Hooks of modules, and the move constructor and destructor of Module.

#include <levin/autograd/function.h>
#include <levin/autograd/modes.h>
#include <levin/nn/forward_result.h>
#include <levin/nn/module.h>

#include <fmt/format.h>

#include <algorithm>
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
      derivations_(std::move(other.derivations_)),
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

namespace {

/// Replaces tensors by what a hook returned; an undefined tensor replaces none.
void replace(const char* hook, const Module& module, std::vector<Tensor>& tensors, const std::vector<Tensor>& others) {
  if (std::ranges::none_of(others, &Tensor::defined)) return;
  if (others.size() != tensors.size())
    throw ValueError(fmt::format("[{}] a {} returned {} tensor{} to replace {}. Return as many, or nothing.",
                                 module.type_name(), hook, others.size(), others.size() == 1 ? "" : "s",
                                 tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (others[i].defined()) tensors[i] = others[i];
}

/// Passes the tensors that require gradients through one node, whose hook gets all their gradients at once and may
/// replace them. Returns false if there are none.
bool watch_gradients(std::vector<Tensor>& tensors, std::function<void(std::vector<Tensor>&)> hook) {
  if (!grad_enabled()) return false;
  const auto node = make_intrusive<Node>("ModuleHook");
  std::vector<Tensor> watched;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || !tensors[i].requires_grad()) continue;
    node->edges.push_back(gradient_edge(tensors[i]));
    watched.push_back(tensors[i]);
    places.push_back(i);
  }
  if (watched.empty()) return false;
  node->multi_backward = [](Context&, std::span<const Tensor> grads) {
    Grads same;
    for (const Tensor& g : grads) same.push_back(g);
    return same;
  };
  std::vector<Tensor> passed;
  for (const Tensor& t : watched) passed.push_back(alias(t, t.sizes(), t.strides(), t.storage_offset()));
  levin::detail::attach_custom(node, watched, passed);
  for (std::size_t k = 0; k < places.size(); ++k) tensors[places[k]] = passed[k];
  node->register_prehook([places, count = tensors.size(), hook = std::move(hook)](std::vector<Tensor>& grads) {
    std::vector<Tensor> all(count);
    for (std::size_t k = 0; k < places.size(); ++k) all[places[k]] = grads[k];
    hook(all);
    for (std::size_t k = 0; k < places.size(); ++k) grads[k] = all[places[k]];
  });
  return true;
}

}  // namespace

struct Module::HookedCall::State {
  Module& module;
  std::shared_ptr<Hooks::Lists> lists;
  /// Gradients of the outputs, kept until those of the inputs are known.
  std::shared_ptr<std::vector<Tensor>> grad_outputs = std::make_shared<std::vector<Tensor>>();
  bool watches_inputs = false;
};

Module::HookedCall::HookedCall(Module& module)
    : state_(std::unique_ptr<State>(new State{.module = module, .lists = module.hooks_->lists})) {}
Module::HookedCall::~HookedCall() = default;

bool Module::HookedCall::before() {
  State& s = *state_;
  bool computes = true;
  try {
    for (const auto& [id, hook] : std::map(s.lists->before))
      replace("forward pre-hook", s.module, inputs, hook(s.module, inputs));
  } catch (const ForwardResult& given) {
    outputs = given.outputs;
    computes = false;
  }
  if (s.lists->backward.empty()) return computes;
  s.watches_inputs = watch_gradients(inputs, [lists = s.lists, outer = s.grad_outputs](std::vector<Tensor>& grads) {
    const std::vector<Tensor> grad_outputs = std::exchange(*outer, {});
    for (const auto& [id, hook] : std::map(lists->backward))
      if (lists->owner) replace("full backward hook", *lists->owner, grads, hook(*lists->owner, grads, grad_outputs));
  });
  return computes;
}

void Module::HookedCall::after() {
  State& s = *state_;
  for (const auto& [id, hook] : std::map(s.lists->after))
    replace("forward hook", s.module, outputs, hook(s.module, inputs, outputs));
  if (s.lists->backward.empty()) return;
  if (s.watches_inputs) {
    watch_gradients(outputs, [kept = s.grad_outputs](std::vector<Tensor>& grads) { *kept = grads; });
  } else {
    watch_gradients(outputs, [lists = s.lists, none = std::vector<Tensor>(inputs.size())](std::vector<Tensor>& grads) {
      if (!lists->owner) return;
      for (const auto& [id, hook] : std::map(lists->backward)) hook(*lists->owner, none, grads);
    });
  }
}

Tensor Module::forward_with_hooks(const Tensor& x) {
  HookedCall call(*this);
  call.inputs = {x};
  if (call.before()) call.outputs = {forward(call.inputs[0])};
  if (call.outputs.size() != 1) detail::refuse_outputs(*this, call.outputs.size());
  call.after();
  return call.outputs[0];
}

std::vector<Tensor> Module::call(const std::vector<Tensor>& inputs) {
  const ListForward f = list_forward();
  const auto compute = [&](const std::vector<Tensor>& list) -> std::vector<Tensor> {
    if (f) return f(*this, list);
    if (list.size() != 1) detail::refuse_inputs(*this, list.size());
    return {forward(list[0])};
  };
  try {
    if (!hooks_) return compute(inputs);
    HookedCall call(*this);
    call.inputs = inputs;
    if (call.before()) call.outputs = compute(call.inputs);
    call.after();
    return std::move(call.outputs);
  } catch (Error& e) {
    add_origin(e, *this);
    throw;
  }
}

// An error passes the modules from the innermost to the outermost. Each finds the one that the error left before among
// its descendants, so that calls that succeed keep nothing.
void add_origin(Error& error, const Module& module) {
  const Error::Origin* origin = error.origin();
  if (!origin) return error.set_origin(&module, "", module.type_name());
  if (origin->outermost == &module) return;
  for (const auto& [name, descendant] : module.named_modules())
    if (descendant == origin->outermost)
      return error.set_origin(&module, origin->path.empty() ? name : name + "." + origin->path, origin->type);
  // It comes from a module that this one does not own.
  if (origin->path.empty()) error.set_origin(&module, "", module.type_name());
}

void detail::refuse_inputs(const Module& module, std::size_t given) {
  throw ValueError(
      fmt::format("[{}] forward cannot be called with {} tensor{}: its parameters are others. Call the "
                  "module by its own class, with all arguments.",
                  module.type_name(), given, given == 1 ? "" : "s"));
}

void detail::refuse_outputs(const Module& module, std::size_t given) {
  throw ValueError(
      fmt::format("[{}] a forward pre-hook provided {} tensor{} as the result, and forward returns another "
                  "number of them.",
                  module.type_name(), given, given == 1 ? "" : "s"));
}

}  // namespace levin::nn
