#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

namespace levin {

void Optimizers::check() const {
  if (config_.frequency < 1)
    throw UsageError(fmt::format("[scheduler] frequency is {}. Give 1 or more.", config_.frequency));
  if (!plateau_) return;
  if (config_.monitor.empty())
    throw UsageError("[scheduler] a plateau scheduler needs a monitor. Name a logged value.");
  if (config_.interval != Interval::epoch)
    throw UsageError("[scheduler] a plateau scheduler steps by the epoch. Leave interval at Interval::epoch.");
}

void Optimizers::step_scheduler(std::optional<double> metric) {
  if (plateau_) plateau_->step(metric.value());
  else scheduler_->step();
}

StateDict Optimizers::scheduler_state() const {
  if (plateau_) return plateau_->state_dict();
  return scheduler_ ? scheduler_->state_dict() : StateDict();
}

void Optimizers::load_scheduler_state(const StateDict& state) {
  if (plateau_) plateau_->load_state_dict(state);
  else if (scheduler_) scheduler_->load_state_dict(state);
}

}  // namespace levin
