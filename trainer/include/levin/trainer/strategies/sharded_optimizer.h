#pragma once
// Capability of strategies that shard the optimizers' state over the ranks (zero, fsdp, pipeline).

#include <levin/core/state_dict.h>
#include <levin/distributed/shard.h>

#include <vector>

namespace levin {

class Optimizers;

/// A rank's optimizers step one-dimensional shards of parameters, or a subset of the parameters.
class ShardedOptimizer {
 public:
  virtual ~ShardedOptimizer() = default;
  /// Called when parameters were added to an optimizer.
  virtual void take_parameters(const Optimizers&) {}
  /// Returns the module's parameters of which an optimizer's parameters are shards.
  virtual std::vector<Parameter> full_parameters(std::vector<Parameter> parameters) const { return parameters; }
  /// Called in addition to the optimizer's own zero_grad.
  virtual void zero_grad(const std::vector<Parameter>&) {}
  /// Converts norms of type `type`, one per shard, to those of the full gradients. Collective.
  virtual Tensor full_norms(const Tensor& norms, double type) const = 0;

  /// Returns the optimizers' state as with one process, on rank zero, so that any number of ranks can resume from it.
  /// Collective. Loading keeps this rank's shard.
  virtual StateDict full_optimizer_state(const Optimizers& optimizers) const = 0;
  virtual void load_full_optimizer_state(Optimizers& optimizers, const StateDict& full) = 0;

  /// True if each rank writes its own shards to a checkpoint, so that no rank has to hold the full state.
  virtual bool saves_shards() const { return false; }
  /// This rank's shards of the optimizers' state. Not collective.
  virtual std::vector<distributed::Shard> optimizer_shards(const Optimizers&) const { return {}; }
};

}  // namespace levin
