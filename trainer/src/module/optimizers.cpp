#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

namespace levin {

struct Optimizers::Entry {
  std::unique_ptr<optim::Optimizer> optimizer{};
  std::unique_ptr<optim::Scheduler> scheduler{};
  std::unique_ptr<optim::ReduceLROnPlateau> plateau{};
  SchedulerConfig config{};
};

namespace {

StateDict part_of(const StateDict& state, std::size_t i, std::size_t count) {
  if (i > 0) return state.sub(Optimizers::prefix(i));
  StateDict own;
  for (const auto& [key, t] : state) {
    bool others = false;
    for (std::size_t k = 1; k < count; ++k) others = others || key.starts_with(Optimizers::prefix(k));
    if (!others) own.set(key, t);
  }
  return own;
}

}  // namespace

Optimizers::Optimizers() = default;
Optimizers::Optimizers(std::unique_ptr<optim::Optimizer> optimizer) { append(optimizer.release()); }
Optimizers::~Optimizers() = default;
Optimizers::Optimizers(Optimizers&&) noexcept = default;
Optimizers& Optimizers::operator=(Optimizers&&) noexcept = default;

void Optimizers::append(optim::Optimizer* owned) {
  std::unique_ptr<optim::Optimizer> optimizer(owned);
  entries_.emplace_back().optimizer = std::move(optimizer);
}

optim::Optimizer& Optimizers::without_scheduler(std::size_t i) {
  Entry& e = entries_.at(i);
  e.plateau.reset();
  e.scheduler.reset();
  return *e.optimizer;
}

void Optimizers::take_scheduler(std::size_t i, optim::Scheduler* owned, SchedulerConfig config) {
  Entry& e = entries_[i];
  e.scheduler.reset(owned);
  e.config = std::move(config);
  check(e);
}

void Optimizers::take_scheduler(std::size_t i, optim::ReduceLROnPlateau* owned, SchedulerConfig config) {
  Entry& e = entries_[i];
  e.plateau.reset(owned);
  e.config = std::move(config);
  check(e);
}

std::size_t Optimizers::size() const { return entries_.size(); }
optim::Optimizer& Optimizers::optimizer(std::size_t i) const { return *entries_.at(i).optimizer; }
const SchedulerConfig& Optimizers::config(std::size_t i) const { return entries_.at(i).config; }
bool Optimizers::has_scheduler(std::size_t i) const { return entries_.at(i).scheduler || entries_.at(i).plateau; }
bool Optimizers::is_plateau(std::size_t i) const { return static_cast<bool>(entries_.at(i).plateau); }
optim::Scheduler* Optimizers::scheduler(std::size_t i) const { return entries_.at(i).scheduler.get(); }

// The first optimizer keeps the names that a checkpoint of a single optimizer has.
std::string Optimizers::prefix(std::size_t i) { return i == 0 ? "" : fmt::format("{}.", i); }

void Optimizers::check(const Entry& e) {
  if (e.config.frequency < 1)
    throw UsageError(fmt::format("[scheduler] frequency is {}. Give 1 or more.", e.config.frequency));
  if (!e.plateau) return;
  if (e.config.monitor.empty())
    throw UsageError("[scheduler] a plateau scheduler needs a monitor. Name a logged value.");
  if (e.config.interval != Interval::epoch)
    throw UsageError("[scheduler] a plateau scheduler steps by the epoch. Leave interval at Interval::epoch.");
}

void Optimizers::step_scheduler(std::optional<double> metric, std::size_t i) {
  const Entry& e = entries_.at(i);
  if (e.plateau && !metric)
    throw UsageError("[scheduler] a plateau scheduler steps by the value it monitors. Give step() that value.");
  if (e.plateau)
    e.plateau->step(*metric);
  else if (e.scheduler)
    e.scheduler->step();
}

StateDict Optimizers::joined(const std::vector<StateDict>& states) {
  StateDict out;
  for (std::size_t i = 0; i < states.size(); ++i) out.merge(prefix(i), states[i]);
  return out;
}

std::vector<StateDict> Optimizers::parts(const StateDict& state) const {
  std::vector<StateDict> out;
  for (std::size_t i = 0; i < size(); ++i) out.push_back(part_of(state, i, size()));
  return out;
}

StateDict Optimizers::optimizer_state() const {
  std::vector<StateDict> states;
  for (const Entry& e : entries_) states.push_back(e.optimizer->state_dict());
  return joined(states);
}

void Optimizers::load_optimizer_state(const StateDict& state) {
  const auto own = parts(state);
  for (std::size_t i = 0; i < size(); ++i) entries_[i].optimizer->load_state_dict(own[i]);
}

StateDict Optimizers::scheduler_state() const {
  StateDict out;
  for (std::size_t i = 0; i < size(); ++i) {
    if (const auto& e = entries_[i]; e.plateau)
      out.merge(prefix(i), e.plateau->state_dict());
    else if (e.scheduler)
      out.merge(prefix(i), e.scheduler->state_dict());
  }
  return out;
}

void Optimizers::load_scheduler_state(const StateDict& state) {
  for (std::size_t i = 0; i < size(); ++i) {
    const StateDict own = part_of(state, i, size());
    if (const auto& e = entries_[i]; e.plateau)
      e.plateau->load_state_dict(own);
    else if (e.scheduler)
      e.scheduler->load_state_dict(own);
  }
}

}  // namespace levin
