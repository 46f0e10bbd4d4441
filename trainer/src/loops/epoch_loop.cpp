#include "src/loops/fit_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "src/launch/slurm.h"
#include "src/metrics/unknown_monitor.h"

namespace levin {
namespace {

/// Returns 0 for validation at the end of an epoch, or by time.
std::int64_t batches_between_validations(const TrainerConfig& c, std::int64_t train_batches) {
  const BatchLimit& interval = c.val_check_interval.batches();
  if (c.val_check_interval.time()) return 0;
  if (train_batches < 0 && !interval.is_count()) {
    if (interval.fraction() == 1.0) return 0;
    throw UsageError(
        fmt::format("--val-check-interval {}: the loader does not know how many batches an epoch has. "
                    "Give 1.0, a number of batches or a time.",
                    interval.fraction()));
  }
  if (interval.is_count()) {
    if (c.check_val_every_n_epoch && train_batches >= 0 && interval.count() > train_batches)
      throw UsageError(
          fmt::format("--val-check-interval {}: an epoch has {} batches. Give at most that many, "
                      "or no --check-val-every-n-epoch.",
                      interval.count(), train_batches));
    return interval.count();
  }
  const auto part = static_cast<std::int64_t>(static_cast<double>(train_batches) * interval.fraction());
  return std::max<std::int64_t>(1, part);
}

}  // namespace

bool EpochLoop::done() const {
  const TrainState& s = run_.state;
  const bool over = s.epoch_complete || (batches_ >= 0 && s.batch >= batches_);
  return over || max_steps_reached() || run_.stop_requested();
}

void EpochLoop::run(bool resumed) {
  const ProfileScope scope("run_training_epoch");
  batches_ = run_.train_batches;
  val_every_ = batches_between_validations(run_.config, batches_);
  TrainState& s = run_.state;
  parts_.runner.begin_epoch();
  if (!resumed) {
    run_.metrics.start_epoch(Split::train);
    run_.metrics.set_scope(Scope::epoch, Split::train);
    run_.call(&Callback::on_train_epoch_start, &LevinModule::on_train_epoch_start);
    run_.agree();
  } else if (s.point == SavePoint::train_batch_end) {
    validate_if_due();  // the validation follows the save of that batch
  } else if (s.point == SavePoint::validation_batch_end) {
    validate(/*resumed=*/true);
  }
  if (!done()) run_batches();
  finish();
}

void EpochLoop::run_batches() {
  TrainState& s = run_.state;
  data::DataLoader& loader = *parts_.data.train;
  const auto loading = [](const auto& load) {
    const ProfileScope wait("[EpochLoop].train_dataloader_next", Phase::data);
    return load();
  };
  auto it = loading([&] { return loader.begin(); });
  // With loaders of unknown size, the first rank at its end ends the epoch on all ranks.
  const auto ended = [&] { return loader.has_size() ? it == loader.end() : run_.strategy->any(it == loader.end()); };
  bool at_end = ended();
  if (at_end) s.epoch_complete = true;  // a loader of unknown size without batches
  while (!at_end) {
    Batch batch = std::move(*it);
    bool last = s.batch + 1 == batches_;
    if (!loader.has_size()) {  // whether this batch is the last is known only after fetching the next one
      run_.train_place = loader.state();
      loading([&] { ++it; });
      at_end = ended();
      last = last || at_end;
    }
    if (!train_batch(run_.to_device(std::move(batch)), last)) break;
    interrupt_if_asked();
    validate_if_due();
    if (done()) break;
    if (!loader.has_size()) continue;
    loading([&] { ++it; });
    at_end = ended();
  }
  run_.train_place.reset();
}

void EpochLoop::skip_epoch() {
  TrainState& s = run_.state;
  s.epoch_complete = true;
  s.micro = 0;  // an open window is dropped: the next batch's zero_grad clears its gradients
  s.window_nominal = s.window_weight = 0;
}

bool EpochLoop::train_batch(const Batch& batch, bool last) {
  const ProfileScope scope("run_training_batch");
  TrainState& s = run_.state;
  const int index = static_cast<int>(s.batch);
  run_.is_last_batch = last;
  run_.metrics.set_scope(Scope::step, Split::train, batch.size());
  run_.callbacks_do(&Callback::on_train_batch_start, batch, index);
  if (!run_.module_do(&LevinModule::on_train_batch_start, batch, index)) {
    skip_epoch();
    return false;
  }
  parts_.loss_check.begin_batch(batch);
  const StepOutput out = parts_.runner.run(batch, index, last, s);
  const bool stepped = s.micro == 0;
  ++s.batch;
  ++s.total_batches;
  s.epoch_complete = last;
  if (last) parts_.runner.step_epoch_schedulers(s.epoch);
  const bool logs = stepped && s.global_step % run_.config.log_every_n_steps == 0;
  if (logs || last) parts_.runner.settle(s);
  if (stepped) update_rates(run_, parts_);
  run_.call(&Callback::on_train_batch_end, &LevinModule::on_train_batch_end, out, batch, index);
  run_.metrics.set_scope(Scope::closed, Split::train);
  const MetricStore::Values values = logs ? run_.metrics.step_values() : MetricStore::Values();
  run_.log_values(values);
  parts_.loss_check.end_batch(/*logged=*/!values.empty());
  parts_.keeper.save_point(SavePoint::train_batch_end);
  return true;
}

void update_rates(Run& run, const FitParts& parts) {
  auto& rates = run.learning_rates;
  rates.clear();
  for (std::size_t i = 0; i < parts.optimizers.size(); ++i)
    for (const auto& group : parts.optimizers.optimizer(i).param_groups()) rates.push_back(group["lr"]);
}

void EpochLoop::requeue() {
  SignalGuard::take_requeue();
  const auto job = slurm::job_id();
  const auto path = parts_.keeper.save_for_requeue();
  if (!run_.strategy->of_rank_zero(job && run_.strategy->is_global_zero() && slurm::requeue(*job))) return;
  throw Interrupted(SIGUSR1,
                    fmt::format("interrupted by SIGUSR1 after step {}. Job {} is requeued and resumes from {}.",
                                run_.state.global_step, job.value_or("of rank 0"), path.string()));
}

void EpochLoop::interrupt_if_asked() {
  if (run_.requeue_asked()) requeue();
  const int signal = run_.signal();
  if (signal == 0) return;
  const auto path = parts_.keeper.save_interrupted();
  throw Interrupted(signal, fmt::format("interrupted by {} after step {}. {}", signal == SIGINT ? "Ctrl-C" : "SIGTERM",
                                        run_.state.global_step,
                                        path.empty() ? "No checkpoint was requested."
                                                     : fmt::format("Resume from {}.", path.string())));
}

bool EpochLoop::max_steps_reached() const {
  return run_.config.max_steps >= 0 && run_.state.global_step >= run_.config.max_steps;
}

bool EpochLoop::validation_due() const {
  const TrainState& s = run_.state;
  const auto& every_epochs = run_.config.check_val_every_n_epoch;
  if (val_.total() == 0 || (every_epochs && (s.epoch + 1) % *every_epochs != 0)) return false;
  if (const auto& time = run_.config.val_check_interval.time())
    return run_.strategy->of_rank_zero(Duration(std::chrono::steady_clock::now() - run_.last_validation) >= *time);
  if (val_every_ == 0) return s.epoch_complete;
  return (every_epochs ? s.batch : s.total_batches) % val_every_ == 0;
}

void EpochLoop::validate_if_due() {
  if (!validation_due()) return;
  parts_.runner.settle(run_.state);
  if (run_.state.micro == 0) run_.module_do(&LevinModule::on_validation_model_zero_grad);
  validate(/*resumed=*/false);
}

void EpochLoop::validate(bool resumed) {
  const auto after_batch = [&] {
    parts_.keeper.mark(SavePoint::validation_batch_end);
    run_.agree();
    interrupt_if_asked();
  };
  EvalLoop(run_, Stage::fit).validate(val_, after_batch, resumed);
  run_.last_validation = std::chrono::steady_clock::now();
  parts_.keeper.save_point(SavePoint::validation_end);
  interrupt_if_asked();
}

void EpochLoop::step_plateaus() {
  for (std::size_t k = 0; !parts_.runner.manual() && k < parts_.optimizers.num_schedulers(); ++k) {
    if (!parts_.optimizers.is_plateau(k)) continue;
    const auto& config = parts_.optimizers.config(k);
    const auto metric = run_.metrics.find(config.monitor);
    if (!metric && config.strict) throw UsageError(unknown_monitor("scheduler", config.monitor, run_.metrics));
    if (metric) parts_.runner.step_plateau_scheduler(k, run_.state.epoch, *metric);
    update_rates(run_, parts_);
  }
}

void EpochLoop::finish() {
  TrainState& s = run_.state;
  parts_.runner.settle(s);
  if (batches_ >= 0 && s.batch >= batches_) s.epoch_complete = true;
  run_.metrics.finish_epoch(Split::train);
  run_.metrics.set_scope(Scope::epoch, Split::train);
  const auto monitors = [](const Callback& c) { return c.is_monitoring(); };
  run_.callbacks_do_where(std::not_fn(monitors), &Callback::on_train_epoch_end);
  run_.module_do(&LevinModule::on_train_epoch_end);
  run_.metrics.finish_epoch(Split::train);  // includes values logged by these hooks
  run_.metrics.set_scope(Scope::closed, Split::train);
  run_.callbacks_do_where(monitors, &Callback::on_train_epoch_end);
  if (s.epoch_complete) step_plateaus();
  run_.log_values(run_.metrics.epoch_values(Split::train));
  run_.flush_loggers();
  parts_.keeper.save_point(SavePoint::train_epoch_end);
}

}  // namespace levin
