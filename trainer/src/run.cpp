#include "run.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace levin {

// A log that cannot be written is no reason to lose the training.
template <class F>
void Run::with_loggers(const char* what, const F& f) {
  for (const auto& logger : loggers) {
    try {
      const ProfileScope scope([&] { return fmt::format("[Logger]{}.{}", short_type_name(typeid(*logger)), what); },
                               Phase::logging);
      f(*logger);
    } catch (const std::exception& e) {
      if (!std::exchange(warned_, true)) spdlog::warn("the log is incomplete: {}", e.what());
    }
  }
}

Batch Run::to_device(Batch batch) {
  const ProfileScope scope([&] { return fmt::format("[Strategy]{}.batch_to_device", strategy.name()); },
                           Phase::transfer);
  const auto by = [&](auto& hooks) {
    Batch moved = hooks.on_before_batch_transfer(std::move(batch));
    moved = hooks.transfer_batch_to_device(std::move(moved), strategy.device());
    return hooks.on_after_batch_transfer(std::move(moved));
  };
  return datamodule ? by(*datamodule) : by(module);
}

void Run::log_values(const MetricStore::Values& values) {
  if (values.empty()) return;
  with_loggers("log_metrics",
               [&](Logger& l) { l.log_metrics({.epoch = state.epoch, .step = state.global_step, .values = values}); });
}

void Run::flush_loggers() {
  with_loggers("save", [](Logger& l) { l.save(); });
}

}  // namespace levin
