#include <levin/trainer/callbacks/gradient_accumulation_scheduler.h>

#include <levin/trainer/step_runner.h>

#include <fmt/format.h>

namespace levin {

GradientAccumulationScheduler::GradientAccumulationScheduler(std::map<std::int64_t, std::int64_t> scheduling)
    : scheduling_(std::move(scheduling)) {
  if (scheduling_.empty())
    throw UsageError(
        "[GradientAccumulationScheduler] scheduling is empty. Give {epoch, batches per step} at least once.");
  for (const auto& [epoch, batches] : scheduling_) {
    if (epoch < 0)
      throw UsageError(
          fmt::format("[GradientAccumulationScheduler] epoch {} is negative. Count epochs from 0.", epoch));
    if (batches < 1)
      throw UsageError(fmt::format("[GradientAccumulationScheduler] epoch {} has {} batches per step. Give 1 or more.",
                                   epoch, batches));
  }
}

std::int64_t GradientAccumulationScheduler::accumulate_at(std::int64_t epoch) const {
  const auto next = scheduling_.upper_bound(epoch);
  return next == scheduling_.begin() ? 1 : std::prev(next)->second;
}

void GradientAccumulationScheduler::setup(RunContext& run) {
  if (run.stage == Stage::fit && run.config.accumulate_grad_batches != 1)
    throw UsageError(fmt::format(
        "[GradientAccumulationScheduler] accumulate_grad_batches is {} and this callback sets it too. Leave "
        "it at 1.",
        run.config.accumulate_grad_batches));
}

// An epoch that is resumed in the middle has no on_train_epoch_start.
void GradientAccumulationScheduler::on_fit_start(RunContext& run) { on_train_epoch_start(run); }

void GradientAccumulationScheduler::on_train_epoch_start(RunContext& run) {
  run.step_options->accumulate_grad_batches = accumulate_at(run.state.epoch);
}

}  // namespace levin
