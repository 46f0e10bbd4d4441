#include <levin/nn/module.h>
#include <levin/nn/set_data.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/node.h>
#include <levin/autograd/row_gradient.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace levin::nn {

void set_data(const Tensor& t, const Tensor& value) {
  TensorImpl& to = *t.impl();
  const TensorImpl& from = *value.impl();
  to.storage = from.storage;
  to.offset = from.offset;
  to.numel = from.numel;
  to.sizes = from.sizes;
  to.strides = from.strides;
  to.dtype = from.dtype;
  to.device = from.device;
  to.contiguous = from.contiguous;
  if (t.requires_grad()) gradient_edge(t).node->outputs[0] = {t.sizes(), t.dtype(), t.device()};
}

namespace {

void move_to(const Tensor& t, std::optional<Device> device, std::optional<DType> dtype) {
  if (!t.defined()) return;
  const Device where = device.value_or(t.device());
  const DType type = dtype && t.is_floating() ? *dtype : t.dtype();
  if (where == t.device() && type == t.dtype()) return;
  const auto rows = row_grad(t);
  const Tensor grad = rows ? Tensor() : t.grad();
  t.set_grad({});
  set_data(t, t.detach().to(where, type));
  if (grad.defined()) t.set_grad(grad.detach().to(where, type));
  if (rows) set_row_grad(t, {rows->indices.to(where), rows->rows.to(where, type)});
}

}  // namespace

Tensor Module::forward(const Tensor& x) {
  if (const ListForward f = list_forward()) {
    const auto outputs = f(*this, {x});
    if (outputs.size() == 1) return outputs[0];
    throw ValueError(
        fmt::format("[{}] forward returns {} tensors, and one is needed here. Call the module by its own "
                    "class, or as module.call({{x}}).",
                    type_name(), outputs.size()));
  }
  throw ValueError(
      fmt::format("[{}] has no forward of one tensor. Define `Tensor forward(const Tensor& x) override`, or derive it "
                  "from nn::Layer to give it other arguments.",
                  type_name()));
}

void Module::check_name(const std::string& name) const {
  if (name.empty() || name.find('.') != std::string::npos)
    throw ValueError(
        fmt::format("[{}] \"{}\" is no name: it must not be empty and must have no dots.", type_name(), name));
  bool taken = false;
  for (const auto& p : parameters_) taken |= p.name == name;
  for (const auto& b : buffers_) taken |= b.name == name;
  for (const auto& c : children_) taken |= c.name == name;
  if (taken) throw ValueError(fmt::format("[{}] the name \"{}\" is taken. Choose another one.", type_name(), name));
}

Parameter& Module::register_parameter(const std::string& name, const Tensor& value) {
  check_name(name);
  if (value.defined()) value.requires_grad_();
  parameters_.push_back({name, std::make_unique<Parameter>(name, value), {}});
  return *parameters_.back().parameter;
}

void Module::derive_parameter(const std::string& name, std::function<Tensor()> compute,
                              std::function<void(Module& copy)> repeat) {
  const auto entry = std::ranges::find(parameters_, name, &NamedParameter::name);
  if (entry == parameters_.end() || !entry->parameter->defined() || entry->compute)
    throw ValueError(fmt::format("[{}] has no parameter \"{}\" of its own that could be derived from others.",
                                 type_name(), name));
  Parameter& place = *entry->parameter;
  entry->compute = compute;
  repeat_in_copies(std::move(repeat));
  place = Parameter(name, compute());
  register_forward_pre_hook([&place, name, compute = std::move(compute)](Module&, const std::vector<Tensor>&) {
    place = Parameter(name, compute());
  });
}

void Module::repeat_in_copies(std::function<void(Module&)> change) { derivations_.push_back(std::move(change)); }

Tensor Module::register_buffer(const std::string& name, const Tensor& value, bool persistent) {
  check_name(name);
  buffers_.push_back({name, value, persistent});
  return value;
}

void Module::adopt(const std::string& name, std::unique_ptr<Module> child) {
  check_name(name);
  children_.push_back({name, std::move(child)});
}

Module& Module::child(std::size_t i) const { return *children_[i].module; }
std::size_t Module::child_count() const { return children_.size(); }

bool Module::forward_in_place(const Tensor&) { return false; }

std::unique_ptr<Module> Module::fresh() const { return factory_ ? factory_() : nullptr; }

/// Calls f(prefix with a dot or empty, module) for this module and all its descendants, parents first. It does not
/// recurse, since trees may be too deep for the stack.
template <class F>
void Module::visit(const std::string& prefix, const F& f) const {
  struct Level {
    const Module* module;
    std::size_t next, length;  // index of the next child, and length of the module's own path
  };
  std::string path = prefix;
  std::vector<Level> levels{{this, 0, path.size()}};
  f(path, *this);
  while (!levels.empty()) {
    Level& top = levels.back();
    if (top.next == top.module->children_.size()) {
      levels.pop_back();
      continue;
    }
    const auto& [name, child] = top.module->children_[top.next++];
    path.resize(top.length);
    path += name;
    path += '.';
    levels.push_back({child.get(), 0, path.size()});
    f(path, *child);
  }
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters(bool recurse, bool remove_duplicate) const {
  std::vector<std::pair<std::string, Tensor>> result;
  std::unordered_set<const TensorImpl*> seen;
  visit("", [&](const std::string& prefix, const Module& m) {
    if (!recurse && &m != this) return;
    for (const auto& [name, p, compute] : m.parameters_)
      if (p->defined() && !compute && (seen.insert(p->impl()).second || !remove_duplicate))
        result.emplace_back(prefix + name, *p);
  });
  return result;
}

std::vector<Parameter> Module::parameters(bool recurse) const {
  std::vector<Parameter> result;
  for (auto& [name, p] : named_parameters(recurse)) result.emplace_back(name, p);
  return result;
}

std::vector<std::pair<std::string, Tensor>> Module::named_buffers(bool recurse) const {
  std::vector<std::pair<std::string, Tensor>> result;
  std::unordered_set<const TensorImpl*> seen;
  visit("", [&](const std::string& prefix, const Module& m) {
    if (!recurse && &m != this) return;
    for (const Buffer& b : m.buffers_)
      if (b.tensor.defined() && seen.insert(b.tensor.impl()).second) result.emplace_back(prefix + b.name, b.tensor);
  });
  return result;
}

std::vector<std::pair<std::string, Module*>> Module::named_children() const {
  std::vector<std::pair<std::string, Module*>> result;
  for (const auto& [name, child] : children_) result.emplace_back(name, child.get());
  return result;
}

std::vector<std::pair<std::string, const Module*>> Module::named_modules() const {
  std::vector<std::pair<std::string, const Module*>> result;
  visit("", [&](const std::string& prefix, const Module& m) {
    result.emplace_back(prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1), &m);
  });
  return result;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> result;
  for (const auto& [name, m] : std::as_const(*this).named_modules()) result.emplace_back(name, const_cast<Module*>(m));
  return result;
}

Module& Module::get_submodule(const std::string& name) {
  std::string known;
  for (const auto& [path, m] : named_modules()) {
    if (path == name) return *m;
    if (!path.empty()) known += (known.empty() ? "" : ", ") + path;
  }
  throw ValueError(
      fmt::format("[{}] has no module \"{}\". It has: {}.", type_name(), name, known.empty() ? "none" : known));
}

int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const auto& entry : named_parameters()) n += entry.second.numel();
  return n;
}

Device Module::device() const {
  for (const auto& entry : named_parameters()) return entry.second.device();
  for (const auto& entry : named_buffers()) return entry.second.device();
  return kCpu;
}

Module& Module::train(bool on) {
  return apply([on](Module& m) { m.training_ = on; });
}

Module& Module::apply(const std::function<void(Module&)>& f) {
  std::vector<Module*> waiting{this}, parents_first;
  while (!waiting.empty()) {
    Module& m = *waiting.back();
    waiting.pop_back();
    parents_first.push_back(&m);
    for (const auto& entry : m.children_) waiting.push_back(entry.module.get());
  }
  for (auto m = parents_first.rbegin(); m != parents_first.rend(); ++m) f(**m);  // children first, in their order
  return *this;
}

Module& Module::to(Device device) {
  for (const auto& entry : named_parameters()) move_to(entry.second, device, std::nullopt);
  for (const auto& entry : named_buffers()) move_to(entry.second, device, std::nullopt);
  return *this;
}

Module& Module::to(DType dtype) {
  if (!levin::is_floating(dtype))
    throw DTypeError(fmt::format("[to] parameters are floating, not {}. Use float32, float64, float16 or bfloat16.",
                                 name_of(dtype)));
  for (const auto& entry : named_parameters()) move_to(entry.second, std::nullopt, dtype);
  for (const auto& entry : named_buffers()) move_to(entry.second, std::nullopt, dtype);
  return *this;
}

Module& Module::to(Device device, DType dtype) {
  to(device);
  return to(dtype);
}

Module& Module::requires_grad_(bool on) {
  for (const auto& entry : named_parameters()) entry.second.requires_grad_(on);
  return *this;
}

void Module::zero_grad(bool set_to_none) {
  for (const auto& [name, p] : named_parameters()) {
    if (!gradient_values(p).defined()) continue;
    if (set_to_none || row_grad(p)) {  // no rows: all zeros
      p.set_grad({});
    } else {
      no_grad guard;
      p.set_grad(p.grad().detach());
      p.grad().zero_();
    }
  }
}

StateDict Module::state_dict() const {
  StateDict result;
  visit("", [&](const std::string& prefix, const Module& m) {
    for (const auto& [name, p, compute] : m.parameters_)
      if (p->defined() && !compute) result.set(prefix + name, p->detach());
    for (const Buffer& b : m.buffers_)
      if (b.persistent && b.tensor.defined()) result.set(prefix + b.name, b.tensor.detach());
  });
  return result;
}

StateDict with_shared_parameters(const Module& module, StateDict state) {
  std::unordered_map<const TensorImpl*, Tensor> found;
  const auto names = module.named_parameters(/*recurse=*/true, /*remove_duplicate=*/false);
  for (const auto& [name, p] : names)
    if (const Tensor* value = state.find(name)) found.emplace(p.impl(), *value);
  for (const auto& [name, p] : names)
    if (const auto value = found.find(p.impl()); value != found.end() && !state.contains(name))
      state.set(name, value->second);
  return state;
}

LoadReport Module::load_state_dict(const StateDict& given, const LoadOptions& options) {
  const StateDict own = state_dict(), state = with_shared_parameters(*this, given);
  LoadReport report;
  std::vector<std::string> problems;
  const auto list = [](const std::vector<std::string>& names) {
    return fmt::format("\"{}\"", fmt::join(names, "\", \""));
  };
  for (const auto& [name, mine] : own) {
    const Tensor* theirs = state.find(name);
    if (!theirs) {
      report.missing.push_back(name);
    } else if (theirs->sizes() != mine.sizes()) {
      problems.push_back(fmt::format("\"{}\" has shape {} here and {} there", name, to_string(mine.sizes()),
                                     to_string(theirs->sizes())));
    } else if (theirs->dtype() != mine.dtype()) {
      if (theirs->is_floating() && mine.is_floating())
        report.converted.push_back(name);
      else
        problems.push_back(
            fmt::format("\"{}\" is {} here and {} there", name, name_of(mine.dtype()), name_of(theirs->dtype())));
    }
  }
  for (const auto& entry : state)
    if (!own.contains(entry.first)) report.unexpected.push_back(entry.first);
  if (options.strict && !report.missing.empty()) problems.push_back("missing: " + list(report.missing));
  if (options.strict && !report.unexpected.empty()) problems.push_back("unexpected: " + list(report.unexpected));
  if (!problems.empty())
    throw StateError(fmt::format("[load_state_dict] this state is not one of a {}: {}. Nothing was loaded.",
                                 type_name(), fmt::join(problems, "; ")));
  no_grad guard;
  for (const auto& [name, mine] : own)
    if (const Tensor* theirs = state.find(name)) mine.copy_(theirs->detach());
  return report;
}

void Cloner::copy_state(const Module& from, Module& to) {
  const auto sources = from.named_modules();
  for (const auto& [name, module] : sources)
    for (const auto& derive : module->derivations_) derive(name.empty() ? to : to.get_submodule(name));
  const auto targets = to.named_modules();
  const auto differ = [&] {
    throw ValueError(
        fmt::format("[clone] building a {} again gave another structure. Pass its constructor's arguments: "
                    "nn::clone(module, arguments...).",
                    from.type_name()));
  };
  if (sources.size() != targets.size()) differ();
  no_grad guard;
  const auto copy = [&](const Tensor& a, const Tensor& b) {
    if (a.defined() != b.defined()) differ();
    if (!a.defined()) return;
    set_data(b, a.detach().clone());
    if (b.requires_grad() != a.requires_grad()) b.requires_grad_(a.requires_grad());
  };
  std::unordered_map<const TensorImpl*, Tensor> copies;  // of parameters
  std::unordered_map<const TensorImpl*, const TensorImpl*> originals;
  const auto copy_parameter = [&](const Parameter& a, Parameter& b) {
    if (a.defined() != b.defined()) differ();
    if (!a.defined()) return;
    const auto known = copies.find(a.impl());
    const bool shares_otherwise = originals.contains(b.impl()) && originals.at(b.impl()) != a.impl();
    if (known != copies.end() ? !known->second.is_same(b) : shares_otherwise)
      b = Parameter(b.name, known != copies.end() ? known->second : a.detach().clone().requires_grad_());
    if (known == copies.end()) copy(a, b);
    copies.emplace(a.impl(), b);
    originals.emplace(b.impl(), a.impl());
  };
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Module& a = *sources[i].second;
    Module& b = *targets[i].second;
    if (sources[i].first != targets[i].first || typeid(a) != typeid(b)) differ();
    if (a.parameters_.size() != b.parameters_.size() || a.buffers_.size() != b.buffers_.size()) differ();
    b.training_ = a.training_;
    for (std::size_t k = 0; k < a.parameters_.size(); ++k)
      if (!a.parameters_[k].compute) copy_parameter(*a.parameters_[k].parameter, *b.parameters_[k].parameter);
    for (std::size_t k = 0; k < a.buffers_.size(); ++k) copy(a.buffers_[k].tensor, b.buffers_[k].tensor);
  }
  for (const auto& [name, module] : targets)
    for (const auto& [own, parameter, compute] : module->parameters_)
      if (compute) *parameter = Parameter(own, compute());
}

}  // namespace levin::nn
