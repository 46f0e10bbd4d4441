#include <levin/trainer/callbacks/early_stopping.h>

#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "src/logging.h"
#include "src/metrics/unknown_monitor.h"

namespace levin {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)),
      best_(options_.mode == Mode::min ? std::numeric_limits<double>::infinity()
                                       : -std::numeric_limits<double>::infinity()) {
  if (options_.monitor.empty())
    throw UsageError("[EarlyStopping] monitor is empty. Name a logged value such as val_loss.");
  if (options_.patience < 0)
    throw UsageError(fmt::format("[EarlyStopping] patience is {}. Give 0 or more.", options_.patience));
}

StateMap EarlyStopping::state() const {
  StateMap s;
  s.set("best", best_);
  s.set("wait", wait_);
  s.set("stopped_epoch", stopped_epoch_);
  s.set("reason", static_cast<std::int64_t>(reason_));
  s.set("patience", options_.patience);
  return s;
}

void EarlyStopping::load_state(const StateMap& s) {
  best_ = s.get<double>("best");
  wait_ = s.get<std::int64_t>("wait");
  stopped_epoch_ = s.get<std::int64_t>("stopped_epoch");
  reason_ = static_cast<Reason>(s.get<std::int64_t>("reason"));
  if (s.has("patience")) options_.patience = s.get<std::int64_t>("patience");
}

bool EarlyStopping::checks_on_train_epoch_end(const RunContext& run) const {
  if (options_.check_on_train_epoch_end) return *options_.check_on_train_epoch_end;
  if (run.eval_batches == 0) return true;  // without validation only training can log the value
  const CheckInterval& interval = run.config.val_check_interval;
  return !interval.time() && !interval.batches().is_count() && interval.batches().fraction() == 1.0 &&
         run.config.check_val_every_n_epoch == 1;
}

void EarlyStopping::on_validation_end(RunContext& run) {
  if (run.stage == Stage::fit && !run.sanity_checking && !checks_on_train_epoch_end(run)) check(run);
}

void EarlyStopping::on_train_epoch_end(RunContext& run) {
  if (checks_on_train_epoch_end(run)) check(run);
}

void EarlyStopping::say(const RunContext& run, const std::string& text) const {
  if (options_.verbose && (!options_.log_rank_zero_only || run.strategy->is_global_zero()))
    logging::info("EarlyStopping: {}", text);
}

void EarlyStopping::check(RunContext& run) {
  if (run.config.fast_dev_run > 0) return;
  const auto value = run.metrics.find(options_.monitor);
  if (!value) {
    const std::string text = unknown_monitor("EarlyStopping", options_.monitor, run.metrics);
    if (options_.strict) throw UsageError(text);
    say(run, text);
    return;
  }
  const double before = best_;
  const Reason reason = judge(*value);
  if (best_ != before) say(run, fmt::format("{} improved from {} to {}", options_.monitor, before, best_));
  if (reason == Reason::not_stopped) return;
  reason_ = reason;
  stopped_epoch_ = run.state.epoch;
  reason_message_ = explain(reason, *value);
  say(run, reason_message_);
  run.stop.request(reason_message_);
}

std::string EarlyStopping::explain(Reason reason, double value) const {
  const auto with = [&](const char* what, double number) {
    return fmt::format("{} = {} {} {}", options_.monitor, value, what, number);
  };
  switch (reason) {
    case Reason::threshold:
      return with("has passed the stopping threshold", *options_.stopping_threshold);
    case Reason::divergence:
      return with("has passed the divergence threshold", *options_.divergence_threshold);
    case Reason::non_finite:
      return with("is not finite; the best was", best_);
    case Reason::patience:
      return fmt::format("{} = {} has not improved on {} in {} checks", options_.monitor, value, best_, wait_);
    case Reason::not_stopped:
      break;
  }
  return {};
}

EarlyStopping::Reason EarlyStopping::judge(double value) {
  if (options_.check_finite && !std::isfinite(value)) return Reason::non_finite;
  if (options_.stopping_threshold && better(value, *options_.stopping_threshold)) return Reason::threshold;
  if (options_.divergence_threshold && better(*options_.divergence_threshold, value)) return Reason::divergence;
  const double margin = options_.mode == Mode::min ? options_.min_delta : -options_.min_delta;
  if (better(value + margin, best_)) {
    best_ = value;
    wait_ = 0;
    return Reason::not_stopped;
  }
  return ++wait_ >= options_.patience ? Reason::patience : Reason::not_stopped;
}

std::string EarlyStopping::state_key() const { return "EarlyStopping/" + options_.monitor; }
std::string EarlyStopping::monitor() const { return options_.strict ? options_.monitor : std::string(); }

}  // namespace levin
