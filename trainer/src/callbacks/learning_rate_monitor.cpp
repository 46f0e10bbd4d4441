#include <levin/trainer/callbacks/monitors.h>

#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

#include <map>

namespace levin {
namespace {

/// A rate to log: that of a scheduler's optimizer, or of an optimizer without one.
struct Rate {
  std::size_t optimizer;
  Interval interval;
  std::string name;
};

/// Returns the rates by optimizer and scheduler, under the schedulers' names, or else as lr-AdamW, lr-AdamW-1, ...
std::vector<Rate> rates_of(const Optimizers& all) {
  std::vector<Rate> rates;
  std::size_t k = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t first = k;
    for (; k < all.num_schedulers() && all.optimizer_of(k) == i; ++k)
      rates.push_back({i, all.config(k).interval, all.config(k).name});
    if (k == first) rates.push_back({i, Interval::step, ""});
  }
  std::map<std::string, int> seen;
  for (Rate& rate : rates) {
    if (!rate.name.empty()) continue;
    const std::string& kind = all.optimizer(rate.optimizer).name();
    const int before = seen[kind]++;
    rate.name = before == 0 ? "lr-" + kind : fmt::format("lr-{}-{}", kind, before);
  }
  return rates;
}

}  // namespace

void LearningRateMonitor::on_train_batch_start(RunContext& run, const Batch&, int) { log(run, Interval::step); }
void LearningRateMonitor::on_train_epoch_start(RunContext& run) { log(run, Interval::epoch); }

void LearningRateMonitor::log(RunContext& run, Interval interval) const {
  const Optimizers& all = *run.optimizers;
  for (const Rate& rate : rates_of(all)) {
    if (options_.logging_interval.value_or(rate.interval) != interval) continue;
    const auto& groups = all.optimizer(rate.optimizer).param_groups();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::string name = options_.log_key_prefix + rate.name;
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
