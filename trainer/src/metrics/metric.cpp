#include <levin/trainer/metrics/metric.h>

#include <levin/autograd/autocast.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <typeinfo>

#include "src/logging.h"

namespace levin::metrics {

Metric::State& Metric::find(std::string_view name) {
  for (auto& s : states_)
    if (s.name == name) return s;
  throw StateError(fmt::format("[{}] there is no state \"{}\". Declare it by add_state.", name_, name));
}

void Metric::add_state(const char* name, const Tensor& initial, StateReduce reduce) {
  State s{name, reduce, initial, {}};
  if (reduce != StateReduce::cat) s.parts = {initial};
  states_.push_back(std::move(s));
}

void Metric::gather(const char* name, const Tensor& part) {
  State& s = find(name);
  if (s.reduce == StateReduce::cat) {
    if (part.numel() > 0) s.parts.push_back(part.detach());
    return;
  }
  const Tensor& now = s.parts[0];
  s.parts[0] = s.reduce == StateReduce::sum   ? now + part
               : s.reduce == StateReduce::max ? maximum(now, part)
                                              : minimum(now, part);
}

Tensor Metric::joined(const State& s) {
  if (s.reduce != StateReduce::cat) return s.parts[0];
  if (s.parts.empty()) return {};
  if (s.parts.size() == 1) return s.parts[0];
  const bool mixed =
      std::any_of(s.parts.begin(), s.parts.end(), [&](const Tensor& t) { return t.dtype() != s.parts[0].dtype(); });
  std::vector<Tensor> parts = s.parts;
  if (mixed)
    for (auto& t : parts) t = t.to(kFloat64);
  return cat(parts);
}

Tensor Metric::state(const char* name) const { return joined(const_cast<Metric*>(this)->find(name)); }

void Metric::follow(Device device) {
  for (auto& s : states_)
    for (auto& t : s.parts)
      if (t.device() != device) t = t.to(device);
}

void Metric::update(const Tensor& preds, const Tensor& target) {
  const no_grad guard;
  const autocast exact(kHalf, false);
  follow(preds.device());
  add(preds, target);
  ++updates_;
}

Tensor Metric::compute() const {
  const no_grad guard;
  if (updates_ == 0) warn("compute was called before any update: its value is meaningless.");
  return result();
}

Tensor Metric::operator()(const Tensor& preds, const Tensor& target) {
  const auto before = states_;
  const auto updates = updates_;
  reset();
  try {
    update(preds, target);
    last_ = compute();
  } catch (...) {
    states_ = before;
    updates_ = updates;
    throw;
  }
  const auto batch = std::exchange(states_, before);
  const no_grad guard;
  follow(preds.device());
  for (const auto& s : batch)
    for (const auto& t : s.parts) gather(s.name.c_str(), t);
  updates_ = updates + 1;
  return last_;
}

void Metric::reset() {
  for (auto& s : states_) {
    s.parts.clear();
    if (s.reduce != StateReduce::cat) s.parts = {s.initial};
  }
  updates_ = 0;
  last_ = {};
}

void Metric::merge(const Metric& other) {
  if (typeid(*this) != typeid(other))
    throw StateError(fmt::format("[{}] cannot merge a metric of another type, {}.", name_, other.name_));
  merge_state_dict(other.state_dict());
}

void Metric::merge_state_dict(const StateDict& state) {
  const no_grad guard;
  const auto before = states_;
  const auto updates = updates_;
  load_state_dict(state);
  const auto added = std::exchange(states_, before);
  updates_ += updates;
  for (const auto& s : added)
    for (const auto& t : s.parts)
      gather(s.name.c_str(), find(s.name).parts.empty() ? t : t.to(find(s.name).parts[0].device()));
}

StateDict Metric::state_dict() const {
  const no_grad guard;
  StateDict out;
  for (const auto& s : states_)
    if (const Tensor t = joined(s); t.defined()) out.set(s.name, t);
  out.set("updates", tensor(updates_));
  return out;
}

// A sum may have grown from a scalar to one entry per output, so only sizes that are fixed are compared.
void Metric::load_state_dict(const StateDict& state) {
  auto loaded = states_;
  const auto misfit = [&](const State& s, const Tensor& t) {
    return StateError(fmt::format("[{}] the saved state \"{}\" is {} {}, which does not fit options that expect {} {}.",
                                  name_, s.name, name_of(t.dtype()), to_string(t.sizes()), name_of(s.initial.dtype()),
                                  to_string(s.initial.sizes())));
  };
  for (auto& s : loaded) {
    const Tensor* t = state.find(s.name);
    s.parts.clear();
    if (s.reduce == StateReduce::cat) {
      if (t && (t->dim() == 0 || is_floating(t->dtype()) != is_floating(s.initial.dtype()))) throw misfit(s, *t);
      if (t) s.parts = {*t};
      continue;
    }
    if (!t) throw StateError(fmt::format("[{}] the saved metric has no state \"{}\".", name_, s.name));
    if (t->dtype() != s.initial.dtype() || (s.initial.dim() > 0 && t->sizes() != s.initial.sizes()))
      throw misfit(s, *t);
    s.parts = {*t};
  }
  updates_ = state.at("updates").item<std::int64_t>();
  states_ = std::move(loaded);
  last_ = {};
}

void Metric::warn(const std::string& text) const {
  if (!std::exchange(warned_, true)) logging::warn("[{}] {}", name_, text);
}

void Metric::require_same_sizes(const Tensor& preds, const Tensor& target) const {
  if (preds.sizes() == target.sizes()) return;
  throw ShapeError(fmt::format("[{}] predictions are {} and targets {}. Give both the same sizes.", name_,
                               to_string(preds.sizes()), to_string(target.sizes())));
}

Metric::Metric(const char* name) : name_(name) {}
Metric::~Metric() = default;
Metric::Metric(const Metric&) = default;
Metric& Metric::operator=(const Metric&) = default;

}  // namespace levin::metrics
