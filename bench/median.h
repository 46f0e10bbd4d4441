#pragma once

#include <algorithm>
#include <vector>

namespace levin::bench {

/// Of an even number of values the higher one of the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace levin::bench
