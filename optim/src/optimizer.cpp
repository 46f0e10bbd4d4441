#include <levin/optim/optimizer.h>

#include "found_inf.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/row_gradient.h>
#include <levin/core/capture/recording.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::optim {

std::vector<Parameter> named(const std::vector<Tensor>& tensors) {
  std::vector<Parameter> result;
  for (const Tensor& t : tensors) result.emplace_back(std::to_string(result.size()), t);
  return result;
}

std::vector<ParamGroup> one_group(std::vector<Parameter> params) { return {{.params = std::move(params)}}; }

Optimizer::Optimizer(std::string name, std::vector<std::string> slots, Settings defaults)
    : name_(std::move(name)),
      slots_(std::move(slots)),
      defaults_(std::move(defaults)),
      groups_(std::make_shared<std::vector<ParamGroup>>()),
      state_(std::make_shared<States>()) {}

Optimizer::~Optimizer() = default;

void Optimizer::check(const Settings&) const {}

void Optimizer::require_range(const Settings& settings, const char* setting, double low, double high) const {
  const double v = settings.at(setting);
  if (!(v >= low && v < high))
    throw ValueError(
        fmt::format("[{}] {} is {}. Give a value of at least {} and below {}.", name_, setting, v, low, high));
}

void Optimizer::add_param_group(ParamGroup group) {
  if (group.params.empty())
    throw ValueError(
        fmt::format("[{}] a parameter group is empty. Give it the parameters of a module that has weights.", name_));
  std::string known;
  for (const auto& entry : defaults_) known += (known.empty() ? "" : ", ") + entry.first;
  for (const auto& entry : group.settings)
    if (!defaults_.count(entry.first))
      throw ValueError(fmt::format("[{}] there is no setting \"{}\". There are: {}.", name_, entry.first, known));
  group.settings.insert(defaults_.begin(), defaults_.end());
  check(group.settings);
  std::vector<Parameter> all = parameters();
  for (const Parameter& p : group.params) {
    if (!p.defined() || !p.is_floating() || !p.is_leaf())
      throw ValueError(fmt::format("[{}] \"{}\" cannot be optimized: give floating leaf tensors.", name_, p.name));
    for (const Parameter& other : all)
      if (other.is_same(p) || other.name == p.name)
        throw ValueError(fmt::format("[{}] the parameter \"{}\" is given twice. Give each one once, with its own name.",
                                     name_, p.name));
    all.push_back(p);
  }
  groups_->push_back(std::move(group));
}

void Optimizer::add_param_groups(std::vector<ParamGroup> groups) {
  for (ParamGroup& g : groups) add_param_group(std::move(g));
}

std::vector<Parameter> Optimizer::parameters() const {
  std::vector<Parameter> all;
  for (const ParamGroup& g : *groups_) all.insert(all.end(), g.params.begin(), g.params.end());
  return all;
}

void Optimizer::check_rows(const ParamGroup&, const Parameter& p) const {
  throw ValueError(
      fmt::format("[{}] the gradient of \"{}\" is row-wise (sparse = true), which {} cannot apply. Use SGD, Adagrad or "
                  "SparseAdam for it, or sparse = false.",
                  name_, p.name, name_));
}
void Optimizer::step_rows(const ParamGroup&, const Parameter&, const RowGradient&) {}

void Optimizer::step() {
  no_grad guard;
  for (const ParamGroup& g : *groups_)  // before anything changes
    for (const Parameter& p : g.params)
      if (row_grad(p)) check_rows(g, p);
  std::vector<const Parameter*> params;
  for (const ParamGroup& g : *groups_) {
    params.clear();
    for (const Parameter& p : g.params) {
      if (const auto rows = row_grad(p)) {
        require_capturable(g, p);
        step_rows(g, p, *rows);
        continue;
      }
      const Tensor& grad = p.grad();
      if (!grad.defined()) continue;
      if (grad.dtype() != p.dtype())
        throw DTypeError(fmt::format("[{}] the gradient of \"{}\" is {}, the parameter {}. Convert one of them.", name_,
                                     p.name, name_of(grad.dtype()), name_of(p.dtype())));
      params.push_back(&p);
    }
    if (params.empty()) continue;
    require_capturable(g, *params[0]);
    step_group(g, params);
  }
}

void Optimizer::step_unless(const Tensor& given) {
  no_grad guard;
  const Tensor found_inf = found_inf_of(name_, given);
  const bool host_counts = std::ranges::any_of(*groups_, [](const ParamGroup& g) { return g["capturable"] == 0; });
  if (host_counts && !skipped_.defined()) skipped_ = zeros({}, {.dtype = kFloat32, .device = found_inf.device()});
  found_inf_ = found_inf;
  try {
    step();
  } catch (...) {
    found_inf_ = {};
    throw;
  }
  found_inf_ = {};
  if (host_counts) skipped_.add_(found_inf);
}

kernels::StepGuard Optimizer::guard() const {
  const auto pointer = [](const Tensor& t) {
    return t.defined() ? static_cast<const float*>(t.tensor_view().pointer) : nullptr;
  };
  return {pointer(found_inf_), pointer(skipped_)};
}

Tensor Optimizer::step(const Closure& closure) {
  Tensor loss = [&] {
    enable_grad guard;
    return closure();
  }();
  step();
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  no_grad guard;
  for (const ParamGroup& g : *groups_)
    for (const Parameter& p : g.params) {
      if (!gradient_values(p).defined()) continue;
      if (set_to_none || row_grad(p)) {  // no rows: all zeros
        p.set_grad({});
      } else {
        p.set_grad(p.grad().detach());
        p.grad().zero_();
      }
    }
}

Optimizer::State& Optimizer::state_of(const Parameter& parameter) {
  const auto found = state_->find(parameter.impl());
  if (found != state_->end()) return found->second;
  require_not_recorded(parameter);
  const int64_t before = skipped_steps();  // earlier skips do not count for this parameter
  State& s = (*state_)[parameter.impl()];
  s.slots.resize(slots_.size());
  s.step = before;
  return s;
}

void Optimizer::count_step(State& s, const ParamGroup& group, const Parameter& p, kernels::OptimTensor& t) {
  if (group["capturable"] == 0) {
    if (s.count.defined()) s.step = steps_of(s) + skipped_steps();
    s.count = {};
    t.step = static_cast<double>(++s.step);
    return;
  }
  if (!s.count.defined()) {
    require_not_recorded(p);
    s.count = full({}, static_cast<double>(steps_of(s)), {.dtype = kFloat64, .device = p.device()});
  }
  t.count = static_cast<double*>(s.count.tensor_view().pointer);
}

const Tensor& Optimizer::slot(State& state, std::size_t index, const Parameter& parameter, double initial) {
  Tensor& t = state.slots[index];
  if (t.defined()) return t;
  require_not_recorded(parameter);
  t = zeros(parameter.sizes(), like(parameter));
  if (initial != 0) t.fill_(initial);
  return t;
}

void Optimizer::prepare(const ParamGroup& group, const Parameter& parameter, unsigned slots, double initial,
                        kernels::OptimTensor& tensor) {
  State& s = state_of(parameter);
  count_step(s, group, parameter, tensor);
  void** const memory[kernels::kOptimSlots] = {&tensor.first, &tensor.second, &tensor.third};
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!(slots >> i & 1u)) continue;
    tensor.fresh = tensor.fresh || !s.slots[i].defined();
    *memory[i] = slot(s, i, parameter, initial).tensor_view().pointer;
  }
}

void Optimizer::require_capturable(const ParamGroup& group, const Parameter& parameter) const {
  if (group["capturable"] == 0 && recording(current_stream(parameter.device())))
    throw StateError(
        fmt::format("[{}] a step with its number and learning rate on the host cannot be captured into a graph. "
                    "Set capturable = true.",
                    name_));
}

void Optimizer::require_not_recorded(const Parameter& parameter) const {
  if (recording(current_stream(parameter.device())))
    throw StateError(
        fmt::format("[{}] the state of \"{}\" would be made by the graph, and anew by each replay. Run a step before "
                    "the capture.",
                    name_, parameter.name));
}

const double* Optimizer::recorded_lr(const ParamGroup& group, const Parameter& parameter) const {
  Recording* const recorded = recording(current_stream(parameter.device()));
  if (!recorded) return nullptr;
  const auto index = static_cast<std::size_t>(&group - groups_->data());
  return recorded->variable([groups = groups_, state = state_, index, then = group.settings, name = name_] {
    const ParamGroup& now = (*groups)[index];
    double lr = 0;
    auto setting = now.settings.begin();  // a search for each key would take longer than a small network's step
    for (const auto& [key, value] : then) {
      while (setting != now.settings.end() && setting->first != key) ++setting;  // over keys added by the program
      const double current = setting == now.settings.end() ? now[key] : setting->second;
      if (key == "lr")
        lr = current;
      else if (current != value)
        throw ValueError(
            fmt::format("[{}] {} is {} now and was {} at the capture, of which only lr may change. Set it back, or "
                        "capture again.",
                        name, key, current, value));
    }
    return lr;
  });
}

int64_t Optimizer::skipped_steps() const {
  return skipped_.defined() ? static_cast<int64_t>(skipped_.item<double>()) : 0;
}

int64_t Optimizer::steps_of(const State& state) const {
  return state.count.defined() ? static_cast<int64_t>(state.count.item<double>()) : state.step - skipped_steps();
}

int64_t Optimizer::steps_done(const Parameter& parameter) const {
  const auto found = state_->find(parameter.impl());
  return found == state_->end() ? 0 : steps_of(found->second);
}

StateDict Optimizer::state_dict() const {
  StateDict result;
  for (const Parameter& p : parameters()) {
    const auto found = state_->find(p.impl());
    if (found == state_->end()) continue;
    const State& s = found->second;
    result.set("state." + p.name + ".step", tensor(static_cast<double>(steps_of(s)), {.dtype = DType::f32}));
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (s.slots[i].defined()) result.set("state." + p.name + "." + slots_[i], s.slots[i]);
  }
  for (std::size_t i = 0; i < groups_->size(); ++i)
    for (const auto& [name, value] : (*groups_)[i].settings)
      result.set(fmt::format("param_groups.{}.{}", i, name), tensor(value, {.dtype = DType::f64}));
  return result;
}

void Optimizer::load_state_dict(const StateDict& state) {
  std::vector<std::string> problems;
  std::size_t used = 0;
  States loaded;
  for (const Parameter& p : parameters()) {
    const std::string prefix = "state." + p.name + ".";
    const Tensor* step = state.find(prefix + "step");
    if (!step) continue;
    ++used;
    State& s = loaded[p.impl()];
    s.step = static_cast<int64_t>(step->item<double>());
    s.slots.resize(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Tensor* t = state.find(prefix + slots_[i]);
      if (!t) continue;
      ++used;
      if (t->sizes() != p.sizes() || t->dtype() != p.dtype()) {
        problems.push_back(fmt::format("\"{}\" is {} {} there and the parameter {} {}", prefix + slots_[i],
                                       to_string(t->sizes()), name_of(t->dtype()), to_string(p.sizes()),
                                       name_of(p.dtype())));
        continue;
      }
      s.slots[i] = t->to(p.device()).detach().contiguous().clone();
    }
  }
  std::vector<Settings> settings;
  for (std::size_t i = 0; i < groups_->size(); ++i) {
    settings.push_back((*groups_)[i].settings);
    for (auto& [name, value] : settings.back()) {
      const std::string key = fmt::format("param_groups.{}.{}", i, name);
      if (const Tensor* t = state.find(key)) {
        ++used;
        value = t->item<double>();
      } else if (name != "capturable") {  // older versions did not save it
        problems.push_back("missing: \"" + key + "\"");
      }
    }
  }
  if (used != state.size())
    problems.push_back(fmt::format("{} of {} entries belong to nothing here", state.size() - used, state.size()));
  if (!problems.empty())
    throw StateError(fmt::format("[load_state_dict] this state is not one of this {}: {}. Nothing was loaded.", name_,
                                 fmt::join(problems, "; ")));
  take(std::move(loaded));
  for (std::size_t i = 0; i < settings.size(); ++i) (*groups_)[i].settings = settings[i];
}
/// Replaces the state by the loaded one. Capturable state is copied in place, because captured graphs use its memory.
void Optimizer::take(States loaded) {
  const no_grad guard;
  for (auto& [parameter, s] : loaded) {
    const auto found = state_->find(parameter);
    if (found == state_->end() || !found->second.count.defined()) continue;
    const State& old = found->second;
    for (std::size_t i = 0; i < s.slots.size(); ++i)
      if (old.slots[i].defined() && s.slots[i].defined()) s.slots[i] = old.slots[i].copy_(s.slots[i]);
    s.count = old.count.fill_(static_cast<double>(s.step));
  }
  *state_ = std::move(loaded);
  skipped_ = {};
}

double& ParamGroup::operator[](const std::string& name) { return settings.at(name); }
double ParamGroup::operator[](const std::string& name) const { return settings.at(name); }
bool ParamGroup::has(const std::string& name) const { return settings.count(name) != 0; }

Optimizer::Optimizer(Optimizer&&) noexcept = default;

}  // namespace levin::optim
