#include "run.h"

#include <spdlog/spdlog.h>

namespace levin {

// A log that cannot be written is no reason to lose the training.
template <class F>
void Run::with_loggers(const F& f) {
  for (const auto& logger : loggers) {
    try {
      f(*logger);
    } catch (const std::exception& e) {
      if (!std::exchange(warned_, true)) spdlog::warn("the log is incomplete: {}", e.what());
    }
  }
}

void Run::log_values(const MetricStore::Values& values) {
  if (values.empty()) return;
  with_loggers([&](Logger& l) { l.log_metrics({.epoch = state.epoch, .step = state.global_step, .values = values}); });
}

void Run::flush_loggers() {
  with_loggers([](Logger& l) { l.save(); });
}

}  // namespace levin
