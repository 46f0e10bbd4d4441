#include "src/metrics/unknown_monitor.h"

#include <fmt/format.h>

#include "src/config/nearest_name.h"

namespace levin {

std::string unknown_monitor(const std::string& who, const std::string& monitor, const MetricStore& metrics) {
  if (metrics.only_on_rank_zero(monitor))
    return fmt::format(
        "[{}] the value \"{}\" is logged with rank_zero_only, so other ranks cannot monitor it. Log it on all, e.g. "
        "with sync_dist.",
        who, monitor);
  const auto names = metrics.names();
  const std::string nearest = nearest_name(monitor, names);
  return fmt::format("[{}] the value \"{}\" was not logged; known are: {}. {}Correct monitor, or log it.", who, monitor,
                     names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", ")),
                     nearest.empty() ? std::string() : fmt::format("Did you mean {}? ", nearest));
}

}  // namespace levin
