#include <levin/distributed/ddp.h>

#include <algorithm>
#include <utility>

#include "rank_strategy.h"
#include "strategies.h"

namespace levin {
namespace {

/// Several processes with a replica each, whose gradients are averaged while backward runs.
class Ddp final : public RankStrategy {
 public:
  Ddp(World& world, Device device, bool find_unused)
      : RankStrategy(world, device), find_unused_(find_unused) {}
  std::string name() const override { return "ddp"; }

  void reduce_in_backward(const std::vector<Parameter>& parameters) override {
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
  void finish_reduction(const std::vector<Parameter>& parameters) override {
    if (!std::exchange(reduced_, false)) return average_gradients(group(), parameters);
    reducer_->set_sync(false);  // backward has waited for it
  }

 private:
  bool find_unused_;
  std::unique_ptr<distributed::Reducer> reducer_;
  std::vector<Parameter> watched_;  // by it
  bool reduced_ = false;            // in the backward of this window
};

}  // namespace

std::unique_ptr<Strategy> make_ddp(const StrategyChoice& choice) {
  return std::make_unique<Ddp>(choice.world(), choice.own_device(), choice.name == "ddp_find_unused_parameters_true");
}

}  // namespace levin
