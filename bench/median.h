#pragma once

#include <algorithm>
#include <vector>

namespace levin::bench {

/// Returns the median; of an even number of values, the higher of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace levin::bench
