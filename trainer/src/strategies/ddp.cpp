#include "ddp.h"

#include <algorithm>
#include <utility>

#include "strategies.h"

namespace levin {

void Ddp::reduce_in_backward(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> watched;
  for (const Parameter& p : parameters)
    if (p.requires_grad()) watched.push_back(p);
  const auto same = [](const Parameter& a, const Parameter& b) { return a.is_same(b); };
  if (!reducer_ || !std::equal(watched.begin(), watched.end(), watched_.begin(), watched_.end(), same)) {
    reducer_.reset();
    reducer_ = std::make_unique<distributed::Reducer>(
        watched, shared_group(), distributed::DistributedDataParallelOptions{.find_unused_parameters = find_unused_});
    watched_ = watched;
  }
  reducer_->set_sync(true);
  reduced_ = true;
}

void Ddp::finish_reduction(const std::vector<Parameter>& parameters) {
  if (!std::exchange(reduced_, false)) return average_gradients(group(), parameters);
  reducer_->set_sync(false);  // backward has waited for it
}

std::unique_ptr<Strategy> make_ddp(const StrategyChoice& choice) {
  return std::make_unique<Ddp>(choice.world(), choice.own_device(), choice.name == "ddp_find_unused_parameters_true");
}

}  // namespace levin
