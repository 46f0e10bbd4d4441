#pragma once
// Base of the strategies with several processes, and functions that several of them need.

#include <levin/distributed/process_group.h>
#include <levin/trainer/optimizers.h>
#include <levin/trainer/strategies/divergent_weights.h>
#include <levin/trainer/strategies/sharded_optimizer.h>
#include <levin/trainer/strategies/sharded_weights.h>
#include <levin/trainer/strategy.h>

#include "src/strategies/world.h"

namespace levin {

class RankStrategy : public Strategy {
 public:
  RankStrategy(World& world, Device device) : Strategy(device, world.info, world.group) {}
  /// Broadcasts rank zero's weights; each rank draws its own random numbers.
  void setup(nn::Module& module) override;
  /// Replaces weights that differ between ranks by their average.
  void finish(nn::Module& module) override;

 protected:
  distributed::ProcessGroup& group() const { return *shared_group(); }
};

/// Averages over all ranks of a group.
class GroupConsensus final : public DivergentWeights {
 public:
  explicit GroupConsensus(distributed::ProcessGroup& group) : group_(group) {}
  StateDict consensus(const StateDict& own) const override;

 private:
  distributed::ProcessGroup& group_;
};

/// Implements ShardedOptimizer::full_norms.
Tensor norms_over_ranks(distributed::ProcessGroup& group, const Tensor& norms, double type);

/// Returns the maps of all ranks, by rank.
std::vector<StateMap> gather_maps(distributed::ProcessGroup& group, const StateMap& own);

/// Multiplies learning rates, and the base rates of schedulers, by `factor`.
void scale_rates(const Optimizers& optimizers, double factor);

/// Collects the shards that `of` returns for each optimizer, named as Optimizers::joined names its state.
template <class F>
std::vector<distributed::Shard> shards_by_optimizer(const Optimizers& optimizers, const F& of) {
  std::vector<distributed::Shard> all;
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    for (distributed::Shard& s : of(optimizers.optimizer(i))) {
      s.name = Optimizers::prefix(i) + s.name;
      all.push_back(std::move(s));
    }
  return all;
}

/// Returns the ranks of each machine. Collective.
std::vector<std::vector<int>> ranks_by_machine(const Strategy& strategy);

/// Averages gradients in place, with zeros where a rank has none; a gradient that no rank has stays undefined.
void average_gradients(distributed::ProcessGroup& group, const std::vector<Parameter>& parameters);

}  // namespace levin
