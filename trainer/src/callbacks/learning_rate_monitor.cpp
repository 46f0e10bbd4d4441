#include <levin/trainer/callbacks/monitors.h>

#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

namespace levin {
namespace {

/// Returns lr-AdamW, lr-AdamW-1, or the name of the optimizer's scheduler.
std::string name_of(const Optimizers& optimizers, std::size_t i) {
  if (!optimizers.config(i).name.empty()) return optimizers.config(i).name;
  const std::string& kind = optimizers.optimizer(i).name();
  int before = 0;
  for (std::size_t k = 0; k < i; ++k)
    if (optimizers.config(k).name.empty() && optimizers.optimizer(k).name() == kind) ++before;
  return before == 0 ? "lr-" + kind : fmt::format("lr-{}-{}", kind, before);
}

}  // namespace

void LearningRateMonitor::on_train_batch_start(RunContext& run, const Batch&, int) { log(run, Interval::step); }
void LearningRateMonitor::on_train_epoch_start(RunContext& run) { log(run, Interval::epoch); }

void LearningRateMonitor::log(RunContext& run, Interval interval) const {
  const Optimizers& all = *run.optimizers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Interval own = all.has_scheduler(i) ? all.config(i).interval : Interval::step;
    if (options_.logging_interval.value_or(own) != interval) continue;
    const auto& groups = all.optimizer(i).param_groups();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::string name = options_.log_key_prefix + name_of(all, i);
      if (groups.size() > 1) name += fmt::format("/pg{}", g + 1);
      const optim::ParamGroup& group = groups[g];
      run.log(name, group["lr"]);
      const char* const momentum = group.has("momentum") ? "momentum" : "beta1";
      if (options_.log_momentum && group.has(momentum)) run.log(name + "-momentum", group[momentum]);
      if (options_.log_weight_decay && group.has("weight_decay"))
        run.log(name + "-weight_decay", group["weight_decay"]);
    }
  }
}

}  // namespace levin
