#pragma once
// Every metric with test data. The names are those of tests/pytorch/metrics.txt.
#include "support/stored_values.h"

#include <levin/levin.h>
#include <levin/trainer/metrics.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace levin::test {

struct MetricCase {
  std::string name;
  std::function<std::unique_ptr<metrics::Metric>()> make;
  Tensor preds, target;
};

std::vector<MetricCase> metric_cases();

}  // namespace levin::test
