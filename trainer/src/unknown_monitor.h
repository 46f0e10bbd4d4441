#pragma once
// What to say of a monitor that has no value.

#include <levin/trainer/metric_store.h>

namespace levin {

/// Lists the names that were logged, and the one with the nearest spelling; or says that rank zero alone has the value.
std::string unknown_monitor(const std::string& who, const std::string& monitor, const MetricStore& metrics);

}  // namespace levin
