#include <levin/trainer/early_stopping.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace levin {

std::string unknown_monitor(const std::string& who, const std::string& monitor, const MetricStore& metrics) {
  const auto names = metrics.names();
  return fmt::format("[{}] the value \"{}\" was not logged; known are: {}. Correct monitor, or log it.", who, monitor,
                     names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", ")));
}

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
  return s;
}

void EarlyStopping::load_state(const StateMap& s) {
  best_ = s.get<double>("best");
  wait_ = s.get<std::int64_t>("wait");
  stopped_epoch_ = s.get<std::int64_t>("stopped_epoch");
  reason_ = static_cast<Reason>(s.get<std::int64_t>("reason"));
}

void EarlyStopping::on_validation_end(RunContext& run) {
  if (run.stage == Stage::fit && !run.sanity_checking && !options_.check_on_train_epoch_end.value_or(false)) check(run);
}

void EarlyStopping::on_train_epoch_end(RunContext& run) {
  // Without validation the value can only come from training.
  if (options_.check_on_train_epoch_end.value_or(run.eval_batches == 0)) check(run);
}

void EarlyStopping::check(RunContext& run) {
  if (run.config.fast_dev_run > 0) return;
  const auto value = run.metrics.find(options_.monitor);
  if (!value) {
    if (options_.strict) throw UsageError(unknown_monitor("EarlyStopping", options_.monitor, run.metrics));
    return;
  }
  reason_ = judge(*value);
  if (reason_ == Reason::none) return;
  stopped_epoch_ = run.state.epoch;
  constexpr const char* kWords[] = {"", "is not finite", "passed the stopping threshold",
                                    "passed the divergence threshold", "no longer improves"};
  run.stop.request(fmt::format("{} = {} {}, best was {}", options_.monitor, *value, kWords[static_cast<int>(reason_)],
                               best_));
}

EarlyStopping::Reason EarlyStopping::judge(double value) {
  if (options_.check_finite && !std::isfinite(value)) return Reason::non_finite;
  if (options_.stopping_threshold && better(value, *options_.stopping_threshold)) return Reason::stopping_threshold;
  if (options_.divergence_threshold && better(*options_.divergence_threshold, value))
    return Reason::divergence_threshold;
  const double margin = options_.mode == Mode::min ? options_.min_delta : -options_.min_delta;
  if (better(value + margin, best_)) {
    best_ = value;
    wait_ = 0;
    return Reason::none;
  }
  return ++wait_ >= options_.patience ? Reason::patience : Reason::none;
}

}  // namespace levin
