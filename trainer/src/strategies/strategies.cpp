#include "src/strategies/strategies.h"

#include <algorithm>

#include "src/strategies/single.h"

namespace levin {
namespace {

constexpr StrategyKind kKinds[] = {
    {"single", [](const StrategyChoice& c) { return make_single(c.devices[0]); }},
    {"dp", make_dp},
    {"ddp", make_ddp},
    {"ddp2", make_ddp2},
    {"ddp_spawn", make_ddp},
    {"horovod", make_horovod},
    {"bagua", make_bagua},
    {"ddp_find_unused_parameters_true", make_ddp},
    {"ddp_find_unused_parameters_false", make_ddp},
    {"zero_1", make_zero},
    {"zero_2", make_zero},
    {"sharded", make_zero},
    {"ddp_sharded", make_zero},
    {"zero_3", make_fsdp},
    {"fsdp", make_fsdp},
    {"fully_sharded", make_fsdp},
    {"pipeline", make_pipeline},
};

}  // namespace

std::unique_ptr<Strategy> make_single(Device device) { return std::make_unique<SingleDevice>(device); }

const StrategyKind* find_strategy(std::string_view name) {
  const auto* kind = std::ranges::find(kKinds, name, &StrategyKind::name);
  return kind == std::end(kKinds) ? nullptr : kind;
}

bool shards_state(std::string_view name) {
  const StrategyKind* kind = find_strategy(name);
  return kind != nullptr && (kind->make == make_zero || kind->make == make_fsdp);
}

std::string known_strategies() {
  std::string names, last;
  for (const auto& kind : kKinds) {
    if (kind.name.starts_with("ddp_find")) continue;
    if (!last.empty()) names += names.empty() ? last : ", " + last;
    last = kind.name;
  }
  return names + " and " + last;
}

World& StrategyChoice::world() const { return join_world(devices, *options); }

Device StrategyChoice::own_device() const { return device_of(world().info, devices); }

}  // namespace levin
