#pragma once
// Base of the strategies with several processes: the group of all ranks and their communication.

#include <levin/trainer/optimizers.h>
#include <levin/trainer/strategy.h>

#include "src/strategies/world.h"

namespace levin {

class RankStrategy : public Strategy {
 public:
  RankStrategy(World& world, Device device) : world_(world), group_(world.group), device_(device) {}
  Device device() const override { return device_; }
  int rank() const override { return world_.info.rank; }
  int world_size() const override { return world_.info.world_size; }
  int local_rank() const override { return world_.info.local_rank; }
  int node_rank() const override { return world_.info.node_rank; }
  distributed::ProcessGroup* process_group() const override { return group_.get(); }

  /// Broadcasts rank zero's weights; each rank draws its own random numbers.
  void setup(nn::Module& module) override;
  void sync_batchnorm(nn::Module& module) override;
  Batch to_device(Batch batch) const override;
  /// Replaces replicas that differ by their average.
  void finish(nn::Module& module) override;
  StateDict consensus(const StateDict& own) override;
  void share_buffers(nn::Module& module) override;
  double reduce(double value, ReduceOp op) override;
  Tensor reduce(const Tensor& value, ReduceOp op) override;
  Tensor broadcast(const Tensor& value, int src) override;
  StateMap broadcast(const StateMap& values, int src) override;
  std::vector<StateMap> gather(const StateMap& own) override;
  Tensor all_gather(const Tensor& value, bool sync_grads) override;
  void barrier() override { group_->barrier().wait(); }
  using Strategy::any;
  void any(std::span<std::uint8_t> flags) override;
  void abort(const std::string& reason) override { group_->abort(reason); }

 protected:
  distributed::ProcessGroup& group() const { return *group_; }
  const std::shared_ptr<distributed::ProcessGroup>& shared_group() const { return group_; }
  /// Implements whole_norms if ranks have shards.
  Tensor norms_over_ranks(const Tensor& norms, double type) const;

 private:
  World& world_;
  std::shared_ptr<distributed::ProcessGroup> group_;
  Device device_;
};

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

/// Returns the ranks of each machine; `node` is this rank's machine. Collective.
std::vector<std::vector<int>> ranks_by_machine(distributed::ProcessGroup& group, int node);

/// Returns the maps of all ranks, by rank.
std::vector<StateMap> gather_maps(distributed::ProcessGroup& group, const StateMap& own);

/// Averages gradients in place, with zeros where a rank has none; a gradient that no rank has stays undefined.
void average_gradients(distributed::ProcessGroup& group, const std::vector<Parameter>& parameters);

}  // namespace levin
