#include <fmt/format.h>
#include <levin/distributed/horovod.h>
#include <levin/trainer/optimizers.h>

#include "src/strategies/by_parameters.h"
#include "src/strategies/rank_strategy.h"
#include "src/strategies/strategies.h"

namespace levin {
namespace {

using namespace distributed;

/// Environment variables apply where the options are unset.
HorovodOptions options_of(const StrategyOptions& o) {
  HorovodOptions h;
  try {
    h = horovod_options(environment());
  } catch (const ValueError& e) {
    throw UsageError(e.what());
  }
  if (o.horovod.fusion_threshold_mb)
    h.fusion_threshold = static_cast<std::int64_t>(*o.horovod.fusion_threshold_mb * 1024 * 1024);
  if (o.horovod.cycle_time_ms) h.cycle_time = *o.horovod.cycle_time_ms;
  if (o.horovod.gradient_compression == "fp16") h.compression = Compression::fp16;
  return h;
}

/// Replicas whose gradients are averaged as in Horovod. Follows Lightning's HorovodStrategy (until 2023): weights and
/// optimizers are broadcast from rank zero at the start, rates are scaled by the number of ranks.
class Horovod final : public RankStrategy {
 public:
  Horovod(World& world, Device device, const StrategyOptions& o)
      : RankStrategy(world, device), options_(options_of(o)), scale_lr_(o.horovod.scale_lr) {}
  std::string name() const override { return "horovod"; }

  void setup_optimizers(const Optimizers& optimizers) override {
    for (std::size_t i = 0; i < optimizers.size(); ++i) broadcast_optimizer_state(optimizers.optimizer(i), group());
    if (scale_lr_) scale_rates(optimizers, world_size());
  }
  void reduce_in_backward(const std::vector<Parameter>& parameters) override { exchange(parameters).set_sync(true); }
  void finish_reduction(const std::vector<Parameter>& parameters) override {
    FusedExchange& all = exchange(parameters);
    all.synchronize();
    all.set_sync(false);
  }

 private:
  FusedExchange& exchange(const std::vector<Parameter>& all) {
    const auto parameters = trainable(all);
    return exchanges_.of(parameters, [&] {
      auto made = std::make_unique<FusedExchange>(parameters, shared_group(), options_);
      made->set_sync(false);
      return made;
    });
  }

  HorovodOptions options_;
  bool scale_lr_;
  ByParameters<FusedExchange> exchanges_;
};

}  // namespace

void check_horovod(const StrategyOptions& o) {
  if (o.horovod.gradient_compression != "none" && o.horovod.gradient_compression != "fp16")
    throw UsageError(fmt::format("--gradient-compression {}: choose none or fp16.", o.horovod.gradient_compression));
  if (o.horovod.fusion_threshold_mb.value_or(0) < 0)
    throw UsageError(fmt::format("--fusion-threshold-mb {}: give 0 or more.", *o.horovod.fusion_threshold_mb));
  if (o.horovod.cycle_time_ms.value_or(0) < 0)
    throw UsageError(fmt::format("--cycle-time-ms {}: give 0 or more.", *o.horovod.cycle_time_ms));
}

std::unique_ptr<Strategy> make_horovod(const StrategyChoice& choice) {
  return std::make_unique<Horovod>(choice.world(), choice.own_device(), *choice.options);
}

}  // namespace levin
