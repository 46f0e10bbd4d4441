#pragma once
// Error message for a monitor that has no value.

#include <levin/trainer/metric_store.h>

namespace levin {

/// Lists the logged names and suggests the nearest one, or says that only rank zero has the value.
std::string unknown_monitor(const std::string& who, const std::string& monitor, const MetricStore& metrics);

}  // namespace levin
