#include "src/data_parallel/exchange.h"

#include <algorithm>
#include <numeric>

namespace levin::distributed {

void run_stages(const std::vector<CommStages>& all) {
  std::size_t stages = 0;
  for (const CommStages& of_one : all) stages = std::max(stages, of_one.size());
  for (std::size_t s = 0; s < stages; ++s) {
    for (const CommStages& of_one : all) {
      if (s < of_one.size()) of_one[s]();
    }
  }
}

std::shared_ptr<ProcessGroup> group_of_its_own(ProcessGroup& group) {
  std::vector<int> all(static_cast<std::size_t>(group.size()));
  std::iota(all.begin(), all.end(), 0);
  return group.new_group(all);
}

}  // namespace levin::distributed
