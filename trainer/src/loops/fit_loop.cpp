#include "src/loops/fit_loop.h"

#include <levin/trainer/callbacks/gradient_accumulation_scheduler.h>

#include <fmt/format.h>

#include <algorithm>

#include "src/logging.h"
#include "src/metrics/unknown_monitor.h"

namespace levin {
namespace {

/// Logs the effective batch size of an optimizer step if it differs from the loader's.
void say_effective_batch(const Run& run, const data::DataLoader& train) {
  const std::int64_t accumulated = run.config.accumulate_grad_batches, ranks = run.strategy->data_ranks();
  const auto& o = train.options();
  const bool known = train.dataset() && !o.batch_sampler;
  if (!known || accumulated * ranks == 1 || !run.strategy->is_global_zero() || !run.config.enable_model_summary) return;
  std::string factors = std::to_string(o.batch_size);
  if (ranks > 1) factors += fmt::format(" x {} ranks", ranks);
  if (accumulated > 1) factors += fmt::format(" x {} accumulated", accumulated);
  logging::info("effective batch {} = {}", o.batch_size * accumulated * ranks, factors);
}

}  // namespace

void load_train(Run& run, DataModule& data, const DataSource& source) {
  if (!data.train) {
    data.train = source.train(run.module);
    if (!data.train) throw UsageError("[fit] there is no loader for training. Give fit one.");
    if (run.config.overfits()) data.train = in_order(data.train);
  }
  if (run.config.use_distributed_sampler) data.train = shared_out(data.train, *run.strategy, /*pad=*/true);
  const auto& c = run.config;
  run.train_batches = c.overfits() ? run.limit(c.overfit_batches, *data.train, "--overfit-batches")
                                   : run.limit(c.limit_train_batches, *data.train, "--limit-train-batches");
  // Ranks take part in all steps together, so the minimum over the ranks applies.
  const auto least = run.strategy->reduce(static_cast<double>(run.train_batches), ReduceOp::min);
  run.train_batches = static_cast<std::int64_t>(least);
  run.counts.train = run.train_batches;
}

FitLoop::FitLoop(Run& run, FitParts& parts) : run_(run), parts_(parts) {}

std::int64_t FitLoop::max_epochs(const TrainerConfig& c) {
  if (c.fast_dev_run > 0) return 1;
  return c.max_epochs.value_or(c.max_steps >= 0 ? -1 : 1000);
}

std::int64_t FitLoop::total_steps(const TrainerConfig& c, std::int64_t train_batches,
                                  const std::vector<CallbackPtr>& callbacks) {
  const std::int64_t epochs = max_epochs(c);
  if (train_batches < 0 || epochs < 0) return c.max_steps;
  std::int64_t all = 0, first = 0, window = c.accumulate_grad_batches;
  const auto count_up_to = [&](std::int64_t epoch) {
    if (epoch <= first) return;
    all += (epoch - first) * std::max<std::int64_t>(1, (train_batches + window - 1) / window);
    first = epoch;
  };
  const std::int64_t end = std::max<std::int64_t>(1, epochs);
  for (const auto& callback : callbacks) {
    const auto* const plan = dynamic_cast<const GradientAccumulationScheduler*>(callback.get());
    if (!plan) continue;
    for (const auto& [epoch, batches] : plan->scheduling()) {
      count_up_to(std::min(epoch, end));
      window = batches;
    }
  }
  count_up_to(end);
  return c.max_steps >= 0 ? std::min(all, c.max_steps) : all;
}

bool FitLoop::done() const {
  const auto& c = run_.config;
  const auto& s = run_.state;
  if (c.max_steps >= 0 && s.global_step >= c.max_steps) return true;
  if (run_.max_epochs >= 0 && s.epoch >= run_.max_epochs) return true;
  return run_.stop_requested();
}

void FitLoop::load_val() {
  val_ = run_.eval_plan(parts_.source);
  parts_.data.val = val_.loaders;
}

void FitLoop::reload() {
  const std::int64_t every = run_.config.reload_dataloaders_every_n_epochs;
  if (every == 0 || run_.state.epoch == 0 || run_.state.epoch % every != 0) return;
  parts_.data.train = nullptr;
  load_train(run_, parts_.data, parts_.source);
  parts_.data.train->set_epoch(run_.state.epoch);
  load_val();
}

void FitLoop::sanity_check() {
  const std::int64_t asked = run_.config.fast_dev_run > 0 ? 0 : run_.config.num_sanity_val_steps;
  const EvalPlan plan = val_.at_most(asked);
  run_.counts.sanity_val = plan.batches;
  if (plan.total() == 0) return;
  run_.sanity_checking = true;
  run_.callbacks_do(&Callback::on_sanity_check_start);
  EvalLoop(run_, Stage::fit).run(plan);
  run_.callbacks_do(&Callback::on_sanity_check_end);
  check_monitors();
  run_.sanity_checking = false;
  run_.metrics.clear();
  for (const auto& loader : val_.loaders) loader->set_epoch(0);
}

void FitLoop::check_monitors() const {
  const auto check = [&](const std::string& who, const std::string& monitor) {
    // Training may still log other names; these can only be logged by validation.
    if (monitor.starts_with("val") && !run_.metrics.find(monitor))
      throw UsageError(unknown_monitor(who, monitor, run_.metrics));
  };
  for (const auto& c : run_.callbacks) check(c->state_key().substr(0, c->state_key().find('/')), c->monitor());
  for (std::size_t k = 0; k < parts_.optimizers.num_schedulers(); ++k)
    if (const auto& config = parts_.optimizers.config(k); parts_.optimizers.is_plateau(k) && config.strict)
      check("scheduler", config.monitor);
}

void FitLoop::run(bool resumed) {
  TrainState& s = run_.state;
  if (!run_.config.overfits() && run_.config.limit_train_batches.is_zero()) return;
  run_.agree();
  if (!resumed) {
    load_val();
    if (!done()) sanity_check();
  }
  load_train(run_, parts_.data, parts_.source);
  if (run_.train_batches == 0) return;
  if (resumed) {
    load_val();
    parts_.keeper.restore_val();
  }
  say_effective_batch(run_, *parts_.data.train);
  run_.eval_batches = val_.total();
  run_.last_validation = std::chrono::steady_clock::now();
  run_.metrics.set_scope(Scope::epoch, Split::train);
  update_rates(run_, parts_);
  run_.call(&Callback::on_train_start, &LevinModule::on_train_start);
  run_.agree();
  // A resumed epoch continues in the middle unless all of it, including its hooks, was finished.
  bool inside = resumed && s.batch > 0;
  const auto next_epoch = [&] {
    ++s.epoch;
    s.batch = 0;
    s.epoch_complete = false;
    parts_.keeper.mark(s.point);
    inside = false;
  };
  if (inside && s.epoch_complete && s.point == SavePoint::train_epoch_end) next_epoch();
  // The end of the epoch must still run, even if its last batch had reached a limit.
  bool unfinished = inside && s.point != SavePoint::train_epoch_end;
  EpochLoop epoch(run_, parts_, val_);
  while (std::exchange(unfinished, false) || !done()) {
    if (!inside) reload();
    epoch.run(std::exchange(inside, false));
    if (!s.epoch_complete) break;
    next_epoch();
  }
  run_.metrics.set_scope(Scope::closed, Split::train);
  run_.call(&Callback::on_train_end, &LevinModule::on_train_end);
}

}  // namespace levin
