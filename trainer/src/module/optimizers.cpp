#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin {

struct Optimizers::Scheduled {
  std::size_t optimizer = 0;
  SchedulerConfig config{};
  std::unique_ptr<optim::Scheduler> scheduler{};
  std::unique_ptr<optim::ReduceLROnPlateau> plateau{};
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
  optimizers_.push_back(std::move(optimizer));
}

void Optimizers::drop_schedulers(std::size_t i) {
  std::erase_if(schedulers_, [&](const Scheduled& s) { return s.optimizer == i; });
}

void Optimizers::take_scheduler(std::size_t i, optim::Scheduler* owned, SchedulerConfig config) {
  insert({.optimizer = i, .config = std::move(config), .scheduler = std::unique_ptr<optim::Scheduler>(owned)});
}

void Optimizers::take_scheduler(std::size_t i, optim::ReduceLROnPlateau* owned, SchedulerConfig config) {
  insert({.optimizer = i, .config = std::move(config), .plateau = std::unique_ptr<optim::ReduceLROnPlateau>(owned)});
}

void Optimizers::insert(Scheduled s) {
  if (s.config.frequency < 1)
    throw UsageError(fmt::format("[scheduler] frequency is {}. Give 1 or more.", s.config.frequency));
  if (s.plateau && s.config.monitor.empty())
    throw UsageError("[scheduler] a plateau scheduler needs a monitor. Name a logged value.");
  if (s.plateau && s.config.interval != Interval::epoch)
    throw UsageError("[scheduler] a plateau scheduler steps by the epoch. Leave interval at Interval::epoch.");
  const auto after = std::ranges::upper_bound(schedulers_, s.optimizer, {}, &Scheduled::optimizer);
  schedulers_.insert(after, std::move(s));
}

std::size_t Optimizers::size() const { return optimizers_.size(); }
optim::Optimizer& Optimizers::optimizer(std::size_t i) const { return *optimizers_.at(i); }
std::size_t Optimizers::num_schedulers() const { return schedulers_.size(); }
const SchedulerConfig& Optimizers::config(std::size_t k) const { return schedulers_.at(k).config; }
std::size_t Optimizers::optimizer_of(std::size_t k) const { return schedulers_.at(k).optimizer; }
bool Optimizers::is_plateau(std::size_t k) const { return static_cast<bool>(schedulers_.at(k).plateau); }
optim::Scheduler* Optimizers::scheduler(std::size_t k) const { return schedulers_.at(k).scheduler.get(); }

std::size_t Optimizers::nth(std::size_t k) const {
  return static_cast<std::size_t>(
      std::count_if(schedulers_.begin(), schedulers_.begin() + static_cast<std::ptrdiff_t>(k),
                    [&](const Scheduled& s) { return s.optimizer == schedulers_[k].optimizer; }));
}

// The first optimizer keeps the names that a checkpoint of a single optimizer has.
std::string Optimizers::prefix(std::size_t i) { return i == 0 ? "" : fmt::format("{}.", i); }

void Optimizers::step_scheduler(std::optional<double> metric, std::size_t k) {
  const Scheduled& s = schedulers_.at(k);
  if (s.plateau && !metric)
    throw UsageError("[scheduler] a plateau scheduler steps by the value it monitors. Give step() that value.");
  if (s.plateau)
    s.plateau->step(*metric);
  else
    s.scheduler->step();
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
  for (const auto& optimizer : optimizers_) states.push_back(optimizer->state_dict());
  return joined(states);
}

void Optimizers::load_optimizer_state(const StateDict& state) {
  const auto own = parts(state);
  for (std::size_t i = 0; i < size(); ++i) optimizers_[i]->load_state_dict(own[i]);
}

namespace {

// The first scheduler of an optimizer keeps the names that a checkpoint of a single one has.
constexpr const char* kFurther = "scheduler";
std::string prefix_of_scheduler(std::size_t nth) { return nth == 0 ? "" : fmt::format("{}{}.", kFurther, nth); }

StateDict state_of_scheduler(const StateDict& of_optimizer, std::size_t nth) {
  if (nth > 0) return of_optimizer.sub(prefix_of_scheduler(nth));
  StateDict own;
  for (const auto& [key, t] : of_optimizer)
    if (!key.starts_with(kFurther)) own.set(key, t);
  return own;
}

}  // namespace

StateDict Optimizers::scheduler_state() const {
  StateDict out;
  for (std::size_t k = 0; k < schedulers_.size(); ++k) {
    const Scheduled& s = schedulers_[k];
    out.merge(prefix(s.optimizer) + prefix_of_scheduler(nth(k)),
              s.plateau ? s.plateau->state_dict() : s.scheduler->state_dict());
  }
  return out;
}

void Optimizers::load_scheduler_state(const StateDict& state) {
  for (std::size_t k = 0; k < schedulers_.size(); ++k) {
    const Scheduled& s = schedulers_[k];
    const StateDict own = state_of_scheduler(part_of(state, s.optimizer, size()), nth(k));
    if (own.empty())
      throw StateError(
          fmt::format("[scheduler] the state holds nothing for scheduler {} of optimizer {}. Return the schedulers "
                      "from configure_optimizers with which it was saved.",
                      nth(k), s.optimizer));
    if (s.plateau)
      s.plateau->load_state_dict(own);
    else
      s.scheduler->load_state_dict(own);
  }
}

}  // namespace levin
