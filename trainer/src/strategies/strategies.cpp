#include "strategies.h"

#include <algorithm>

namespace levin {
namespace {

constexpr StrategyKind kKinds[] = {
    {"single", [](const StrategyChoice& c) { return make_single(c.devices[0]); }},
    {"dp", make_dp},
    {"ddp", make_ddp},
    {"ddp2", make_ddp2},
    {"ddp_spawn", make_ddp},
    {"horovod", make_horovod},
    {"ddp_find_unused_parameters_true", make_ddp},
    {"ddp_find_unused_parameters_false", make_ddp},
};

}  // namespace

const StrategyKind* find_strategy(std::string_view name) {
  const auto* kind = std::ranges::find(kKinds, name, &StrategyKind::name);
  return kind == std::end(kKinds) ? nullptr : kind;
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

World& StrategyChoice::world() const { return join_world(static_cast<int>(devices.size()), *options); }

Device StrategyChoice::own_device() const {
  const auto local = static_cast<std::size_t>(world().info.local_rank);
  // Under a launcher that started more ranks than "auto" knows of, each takes the device of its own number.
  if (local < devices.size()) return devices[local];
  return devices[0] == kCpu ? kCpu : cuda(static_cast<int>(local));
}

}  // namespace levin
