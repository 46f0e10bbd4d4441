#include <levin/trainer/callbacks/timer.h>

#include <levin/trainer/module.h>

#include <fmt/format.h>

#include "src/logging.h"

namespace levin {

Timer::Timer(TimerOptions options) : options_(std::move(options)) {
  if (options_.duration && options_.duration->seconds() < 0)
    throw UsageError(
        fmt::format("[Timer] duration is {} seconds. Give a time of 0 or more.", options_.duration->seconds()));
  if (!options_.clock) options_.clock = monotonic_seconds;
}

double Timer::time_elapsed(Split split) const {
  if (split == Split::predict) return 0;
  const Watch& w = watches_[static_cast<std::size_t>(split)];
  return w.before + (w.start ? options_.clock() - *w.start : 0.0);
}

std::optional<double> Timer::time_remaining() const {
  if (!options_.duration) return {};
  return options_.duration->seconds() - time_elapsed();
}

void Timer::stop(Split split) {
  watch(split).before = time_elapsed(split);
  watch(split).start.reset();
}

StateMap Timer::state() const {
  StateMap s;
  s.set("train", time_elapsed(Split::train));
  s.set("validation", time_elapsed(Split::validation));
  s.set("test", time_elapsed(Split::test));
  return s;
}

void Timer::load_state(const StateMap& s) {
  watches_[0] = {.before = s.get<double>("train")};
  watches_[1] = {.before = s.get<double>("validation")};
  watches_[2] = {.before = s.get<double>("test")};
}

void Timer::check(RunContext& run) {
  const auto left = time_remaining();
  if (!left || *left > 0 || run.stop.requested()) return;
  const auto text =
      fmt::format("the time limit of {} is reached after {:.1f} s", options_.duration->text(), time_elapsed());
  if (options_.verbose) logging::info("training stops: {}", text);
  run.stop.request(text);
}

// A new fit starts at 0; a resumed one has loaded its time.
void Timer::on_fit_start(RunContext& run) {
  if (!run.resumed) watches_[0] = watches_[1] = {};
  check(run);  // a resumed run may have no time left, for any interval
}

void Timer::on_train_start(RunContext&) { start(Split::train); }
void Timer::on_train_end(RunContext&) { stop(Split::train); }

void Timer::on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) {
  if (options_.interval == Interval::step) check(run);
}

void Timer::on_train_epoch_end(RunContext& run) {
  if (options_.interval == Interval::epoch) check(run);
}

void Timer::on_validation_start(RunContext&) { start(Split::validation); }
void Timer::on_validation_batch_start(RunContext&, const Batch&, int) {
  if (!watch(Split::validation).start) start(Split::validation);  // a resumed validation has no start hook
}
void Timer::on_validation_end(RunContext&) { stop(Split::validation); }
void Timer::on_test_start(RunContext&) { start(Split::test); }
void Timer::on_test_end(RunContext&) { stop(Split::test); }

void Timer::teardown(RunContext&) {  // also called after an exception
  for (const Split split : {Split::train, Split::validation, Split::test}) stop(split);
}

}  // namespace levin
