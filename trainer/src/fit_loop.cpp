#include "fit_loop.h"

#include <levin/trainer/early_stopping.h>

#include <fmt/format.h>

namespace levin {

FitLoop::FitLoop(Run& run, FitParts& parts)
    : run_(run), parts_(parts),
      val_batches_(parts.val ? run.limit(run.config.limit_val_batches, *parts.val, "--limit-val-batches") : 0) {}

std::int64_t FitLoop::max_epochs(const TrainerConfig& c) {
  if (c.fast_dev_run > 0) return 1;
  return c.max_epochs.value_or(c.max_steps >= 0 ? -1 : 1000);
}

std::int64_t FitLoop::total_steps(const TrainerConfig& c, std::int64_t train_batches, std::int64_t max_epochs) {
  const std::int64_t windows = (train_batches + c.accumulate_grad_batches - 1) / c.accumulate_grad_batches;
  if (max_epochs < 0) return c.max_steps;
  const std::int64_t all = windows * max_epochs;
  return c.max_steps >= 0 ? std::min(all, c.max_steps) : all;
}

bool FitLoop::done() const {
  const auto& c = run_.config;
  const auto& s = run_.state;
  if (c.max_steps >= 0 && s.global_step >= c.max_steps) return true;
  if (run_.context.max_epochs >= 0 && s.epoch >= run_.context.max_epochs) return true;
  return run_.stop_requested();
}

void FitLoop::sanity_check() {
  const std::int64_t asked = run_.config.fast_dev_run > 0 ? 0 : run_.config.num_sanity_val_steps;
  const std::int64_t batches = asked < 0 ? val_batches_ : std::min(asked, val_batches_);
  if (batches == 0) return;
  run_.context.sanity_checking = true;
  run_.callbacks_do(&Callback::on_sanity_check_start);
  EvalLoop(run_, Stage::fit).run(*parts_.val, batches);
  run_.callbacks_do(&Callback::on_sanity_check_end);
  check_monitors();
  run_.context.sanity_checking = false;
  run_.metrics.clear();
  parts_.val->set_epoch(0);
}

void FitLoop::check_monitors() const {
  const auto check = [&](const std::string& who, const std::string& monitor) {
    // Training may still log other names; these can only be validation's.
    if (monitor.starts_with("val") && !run_.metrics.find(monitor))
      throw UsageError(unknown_monitor(who, monitor, run_.metrics));
  };
  for (const auto& c : run_.callbacks) check(c->state_key().substr(0, c->state_key().find('/')), c->monitor());
  for (std::size_t i = 0; i < parts_.optimizers.size(); ++i)
    if (const auto& config = parts_.optimizers.config(i); parts_.optimizers.is_plateau(i) && config.strict)
      check("scheduler", config.monitor);
}

void FitLoop::run(bool resumed) {
  TrainState& s = run_.state;
  if (!resumed && !done()) sanity_check();
  run_.context.eval_batches = val_batches_;
  run_.metrics.set_scope(Scope::epoch, Split::train);
  run_.call(&Callback::on_train_start, &LevinModule::on_train_start);
  // A resumed epoch goes on inside unless all of it, hooks included, had happened.
  bool inside = resumed && s.batch > 0;
  const auto next_epoch = [&] {
    ++s.epoch;
    s.batch = 0;
    s.epoch_complete = false;
    inside = false;
  };
  if (inside && s.epoch_complete && s.point == SavePoint::train_epoch_end) next_epoch();
  EpochLoop epoch(run_, parts_, val_batches_);
  while (!done()) {
    epoch.run(std::exchange(inside, false));
    if (!s.epoch_complete) break;
    next_epoch();
  }
  run_.metrics.set_scope(Scope::closed, Split::train);
  run_.call(&Callback::on_train_end, &LevinModule::on_train_end);
}

}  // namespace levin
