#pragma once
// Capability of strategies that shard the module's weights over the ranks (fsdp, pipeline).

#include <levin/distributed/shard.h>
#include <levin/nn/module.h>

#include <vector>

namespace levin {

/// No rank holds all values of the module's parameters. Comes with a ShardedOptimizer.
class ShardedWeights {
 public:
  virtual ~ShardedWeights() = default;
  /// Returns the module's state dict as with one process, on rank zero. Collective.
  virtual StateDict full_state_dict(const nn::Module& module) const = 0;
  /// Keeps this rank's shard; an undefined tensor keeps the current values.
  virtual void load_full_state_dict(nn::Module& module, const StateDict& full) = 0;
  /// This rank's shards of the state dict, for a strategy that saves_shards(). Not collective.
  virtual std::vector<distributed::Shard> weight_shards(const nn::Module&) const { return {}; }
};

}  // namespace levin
