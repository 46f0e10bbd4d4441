#include "fit_loop.h"

#include <levin/trainer/early_stopping.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace levin {
namespace {

std::int64_t batches_between_validations(const TrainerConfig& c, std::int64_t train_batches) {
  const BatchLimit& interval = c.val_check_interval.batches();
  if (interval.is_count()) {
    if (interval.count() > train_batches)
      throw UsageError(fmt::format("--val-check-interval {}: an epoch has {} batches. Give at most that many.",
                                   interval.count(), train_batches));
    return interval.count();
  }
  return std::max<std::int64_t>(1, interval.of(train_batches, "--val-check-interval"));
}

}  // namespace

EpochLoop::EpochLoop(Run& run, FitParts& parts, std::int64_t val_batches)
    : run_(run), parts_(parts), batches_(run.context.train_batches), val_batches_(val_batches),
      val_every_(batches_between_validations(run.config, batches_)) {}

void EpochLoop::run(bool resumed) {
  const ProfileScope scope("run_training_epoch");
  TrainState& s = run_.state;
  if (!resumed) {
    run_.metrics.start_epoch(Split::train);
    run_.metrics.set_scope(Scope::epoch, Split::train);
    run_.call(&Callback::on_train_epoch_start, &LevinModule::on_train_epoch_start);
  } else if (s.point == SavePoint::train_batch_end) {
    validate_if_due();  // it comes after the save of that batch
  }
  const auto stop = [&] { return s.batch >= batches_ || max_steps_reached() || run_.stop_requested(); };
  const auto loading = [](const auto& load) {
    const ProfileScope wait("[EpochLoop].train_dataloader_next", Phase::data);
    return load();
  };
  if (!stop()) {
    for (auto it = loading([&] { return parts_.train.begin(); }); it != parts_.train.end();) {
      if (!train_batch(run_.to_device(*it))) break;
      interrupt_if_asked();
      validate_if_due();
      if (stop()) break;
      loading([&] { ++it; });
    }
  }
  finish();
}

bool EpochLoop::train_batch(const Batch& batch) {
  const ProfileScope scope("run_training_batch");
  TrainState& s = run_.state;
  const int index = static_cast<int>(s.batch);
  const bool last = s.batch + 1 == batches_;
  run_.metrics.set_scope(Scope::step, Split::train, batch.size());
  run_.callbacks_do(&Callback::on_train_batch_start, batch, index);
  if (!run_.module.on_train_batch_start(batch, index)) {
    s.epoch_complete = true;
    s.micro = 0;  // an open window is dropped: its gradients go with the next batch's zero_grad
    s.window_nominal = s.window_weight = 0;
    return false;
  }
  const StepOutput out = parts_.runner.run(batch, index, last, s);
  const bool stepped = s.micro == 0;
  ++s.batch;
  s.epoch_complete = last;
  if (last) parts_.runner.step_epoch_scheduler(s.epoch, /*plateau=*/false, std::nullopt);
  const bool logs = stepped && s.global_step % run_.config.log_every_n_steps == 0;
  if (logs || last) parts_.runner.settle(s);
  if (stepped) update_rates();
  run_.call(&Callback::on_train_batch_end, &LevinModule::on_train_batch_end, out, batch, index);
  run_.metrics.set_scope(Scope::closed, Split::train);
  if (logs) run_.log_values(run_.metrics.step_values());
  parts_.keeper.save_point(SavePoint::train_batch_end);
  return true;
}

void EpochLoop::update_rates() {
  auto& rates = run_.context.learning_rates;
  rates.clear();
  for (std::size_t i = 0; i < parts_.optimizers.size(); ++i)
    for (const auto& group : parts_.optimizers.optimizer(i).param_groups()) rates.push_back(group["lr"]);
}

void EpochLoop::interrupt_if_asked() {
  if (!run_.interrupted()) return;
  const int signal = SignalGuard::received();
  const auto path = parts_.keeper.save_interrupted();
  throw Interrupted(signal, fmt::format("interrupted by {} after step {}. {}",
                                        signal == SIGINT ? "Ctrl-C" : "SIGTERM", run_.state.global_step,
                                        path.empty() ? "No checkpoint was asked for."
                                                     : fmt::format("Resume from {}.", path.string())));
}

bool EpochLoop::max_steps_reached() const {
  return run_.config.max_steps >= 0 && run_.state.global_step >= run_.config.max_steps;
}

bool EpochLoop::validation_due() const {
  return val_batches_ > 0 && run_.state.batch % val_every_ == 0 &&
         (run_.state.epoch + 1) % run_.config.check_val_every_n_epoch.value_or(1) == 0;
}

void EpochLoop::validate_if_due() {
  if (!validation_due()) return;
  parts_.runner.settle(run_.state);
  const GeneratorState before = default_generator().state();
  if (run_.state.micro == 0) run_.module.on_validation_model_zero_grad();
  if (!EvalLoop(run_, Stage::fit).run(*parts_.val, val_batches_)) {
    default_generator().set_state(before);  // the validation begins anew after a resume
    interrupt_if_asked();
  }
  parts_.keeper.save_point(SavePoint::validation_end);
  interrupt_if_asked();
}

void EpochLoop::step_plateau() {
  if (!parts_.optimizers.is_plateau()) return;
  const auto& config = parts_.optimizers.config();
  const auto metric = run_.metrics.find(config.monitor);
  if (!metric && config.strict) throw UsageError(unknown_monitor("scheduler", config.monitor, run_.metrics));
  if (metric) parts_.runner.step_epoch_scheduler(run_.state.epoch, /*plateau=*/true, metric);
  update_rates();
}

void EpochLoop::finish() {
  TrainState& s = run_.state;
  parts_.runner.settle(s);
  if (s.batch >= batches_) s.epoch_complete = true;
  run_.metrics.finish_epoch(Split::train);
  run_.metrics.set_scope(Scope::epoch, Split::train);
  for (const auto& c : run_.callbacks)
    if (!c->is_monitoring()) c->on_train_epoch_end(run_.context);
  run_.module.on_train_epoch_end();
  run_.metrics.finish_epoch(Split::train);  // with what these hooks have logged
  run_.metrics.set_scope(Scope::closed, Split::train);
  for (const auto& c : run_.callbacks)
    if (c->is_monitoring()) c->on_train_epoch_end(run_.context);
  if (s.epoch_complete) step_plateau();
  run_.log_values(run_.metrics.epoch_values(Split::train));
  run_.flush_loggers();
  parts_.keeper.save_point(SavePoint::train_epoch_end);
}

}  // namespace levin
