#include <levin/optim/composed_schedulers.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace levin::optim {

void SchedulerList::scale_base_lrs(double factor) {
  Scheduler::scale_base_lrs(factor);
  for (const auto& s : schedulers_) s->scale_base_lrs(factor);
}

StateDict SchedulerList::state_dict() const {
  StateDict state = Scheduler::state_dict();
  for (std::size_t k = 0; k < schedulers_.size(); ++k)
    state.merge(fmt::format("schedulers.{}.", k), schedulers_[k]->state_dict());
  return state;
}

void SchedulerList::load_state_dict(const StateDict& state) {
  std::vector<StateDict> before;
  for (const auto& s : schedulers_) before.push_back(s->state_dict());
  try {
    for (std::size_t k = 0; k < schedulers_.size(); ++k)
      schedulers_[k]->load_state_dict(state.sub(fmt::format("schedulers.{}.", k)));
    Scheduler::load_state_dict(state);
  } catch (...) {
    for (std::size_t k = 0; k < schedulers_.size(); ++k) schedulers_[k]->load_state_dict(before[k]);
    throw;
  }
}

void SchedulerList::restart(std::size_t k) const {
  schedulers_[k]->last_epoch_ = 0;
  schedulers_[k]->apply();
}

void SequentialLR::start() {
  if (milestones_.size() + 1 != count() || !std::ranges::is_sorted(milestones_))
    throw ValueError(fmt::format(
        "[SequentialLR] {} schedulers need {} milestones in order, which are {}. Give the step at which each "
        "further scheduler starts.",
        count(), count() - 1, fmt::join(milestones_, ", ")));
  restart(0);
}

std::size_t SequentialLR::current() const {
  return static_cast<std::size_t>(std::ranges::upper_bound(milestones_, last_epoch()) - milestones_.begin());
}

double SequentialLR::lr(std::size_t i) const { return lr_of(current(), i); }

void SequentialLR::step() {
  advance();
  const std::size_t k = current();
  if (k > 0 && milestones_[k - 1] == last_epoch())
    restart(k);
  else
    scheduler(k).step();
}

double ChainedScheduler::lr(std::size_t i) const {
  double lr = base_lr(i);
  for (std::size_t k = 0; k < count(); ++k) lr *= base_lr(i) != 0 ? lr_of(k, i) / base_lr(i) : 0.0;
  return lr;
}

void ChainedScheduler::start() { apply(); }

void ChainedScheduler::step() {
  advance();
  for (std::size_t k = 0; k < count(); ++k) scheduler(k).step();
}

}  // namespace levin::optim
