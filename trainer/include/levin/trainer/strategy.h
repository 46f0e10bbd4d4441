#pragma once
// Strategies: how many processes and devices take part. Independent of precision.

#include <levin/core/state_map.h>
#include <levin/data/batch.h>
#include <levin/distributed/reduce_op.h>
#include <levin/nn/module.h>
#include <levin/trainer/config/limits.h>
#include <levin/trainer/config/strategy_config.h>

#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace levin {

namespace distributed {
class ProcessGroup;
struct RankInfo;
}  // namespace distributed
class DivergentWeights;
class Optimizers;
class Replicas;
class ShardedOptimizer;
class ShardedWeights;
class Stages;

using distributed::ReduceOp;

/// Each way of training is a subclass. Features that only some strategies have are capabilities, each in a header of
/// levin/trainer/strategies; a caller asks for one and gets null if the strategy does not have it:
///
///     if (ShardedOptimizer* sharded = strategy.sharded_optimizer()) sharded->zero_grad(parameters);
class Strategy {
 public:
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  /// Name of the strategy, such as "ddp".
  virtual std::string name() const = 0;
  Device device() const { return device_; }           ///< device of this process
  int rank() const { return rank_; }                  ///< rank among all processes
  int world_size() const { return world_size_; }      ///< number of processes
  int local_rank() const { return local_rank_; }      ///< rank among the processes of this machine
  int node_rank() const { return node_rank_; }        ///< index of this machine
  bool is_global_zero() const { return rank_ == 0; }  ///< true on the rank that writes
  /// Group of all ranks, for custom collectives; null for a strategy of one process.
  distributed::ProcessGroup* process_group() const { return group_.get(); }
  /// Number of ranks that share the data. If 1, all ranks read the same batches and log the same values.
  virtual int data_ranks() const { return world_size_; }
  /// True if sync_dist reaches other ranks.
  virtual bool syncs_logs() const { return true; }

  /// Moves the module to the device, before the optimizers are created. Broadcasts rank zero's weights and buffers.
  virtual void setup(nn::Module& module) = 0;
  /// Called when the optimizers are created, before a checkpoint is loaded into them.
  virtual void setup_optimizers(const Optimizers&) {}
  /// Called before the optimizers are destroyed.
  virtual void release_optimizers() {}
  /// Called on all ranks after the last step of a fit: completes all pending communication.
  virtual void end_training() {}
  /// Called after a completed run: makes the module the same as with one process.
  virtual void finish(nn::Module&) {}

  /// Broadcasts rank zero's buffers; called before a forward in training and before an evaluation.
  virtual void broadcast_buffers(nn::Module& module);
  /// Called before the backward that closes an accumulation window: that backward reduces the gradients of these
  /// parameters while it runs. Any other backward leaves gradients local.
  virtual void reduce_in_backward(const std::vector<Parameter>& parameters) = 0;
  /// Makes the gradients of these parameters averages over the ranks: waits for those that backward reduced, or, if
  /// none did, averages the accumulated gradients.
  virtual void finish_reduction(const std::vector<Parameter>& parameters) = 0;
  /// True if averaged gradients may accumulate another backward and be averaged again before a step.
  virtual bool may_average_again() const { return false; }
  /// Like optim::clip_grad_norm_, using the norm over all ranks.
  virtual void clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm);
  /// Called around a step of the optimizer of these parameters, when gradients are unscaled and clipped; also around
  /// steps that the scaler skips.
  virtual void before_step(const std::vector<Parameter>&) {}
  virtual void after_step(const std::vector<Parameter>&) {}

  /// Additional state that a resumed run needs; the same on all ranks.
  virtual StateMap state() { return {}; }
  virtual void load_state(const StateMap&) {}

  // Capabilities, null for strategies without them
  virtual Replicas* replicas() { return nullptr; }                   ///< several copies of the module in one process
  virtual Stages* stages() { return nullptr; }                       ///< consecutive layers on different ranks
  virtual ShardedOptimizer* sharded_optimizer() { return nullptr; }  ///< each rank has a shard of optimizer state
  virtual ShardedWeights* sharded_weights() { return nullptr; }      ///< each rank has a shard of the weights
  virtual DivergentWeights* divergent_weights() { return nullptr; }  ///< each rank has weights of its own

  /// Returns the batch on this process's device.
  Batch to_device(Batch batch) const;
  /// Makes batch norm use the statistics of all ranks.
  void sync_batchnorm(nn::Module& module) const;

  /// Returns the reduction of all ranks' values. This and the following are collectives over the process group; with
  /// one process they return their argument.
  double reduce(double value, ReduceOp op) const;
  /// The same for a tensor, on its device; asynchronous to the host.
  Tensor reduce(const Tensor& value, ReduceOp op) const;
  /// Returns the value of rank `src` on every rank. The tensor must have the same sizes and type on all ranks.
  Tensor broadcast(const Tensor& value, int src) const;
  StateMap broadcast(const StateMap& values, int src) const;
  /// Returns the tensors of all ranks, (world_size, ...) with several ranks; with one rank its tensor unchanged, as in
  /// Lightning. With `sync_grads` gradients flow back to each rank's tensor.
  Tensor all_gather(const Tensor& value, bool sync_grads) const;
  /// Returns when all ranks have called it.
  void barrier() const;
  /// Returns the maps of all ranks, by rank.
  std::vector<StateMap> gather(const StateMap& own) const;
  /// Logical or over the ranks: sets each flag (nonzero) that any rank has set. All ranks pass the same number of
  /// flags.
  void any(std::span<std::uint8_t> flags) const;
  bool any(bool flag) const {
    std::uint8_t one = flag ? 1 : 0;
    any(std::span(&one, 1));
    return one != 0;
  }
  /// Returns rank zero's flag.
  bool of_rank_zero(bool flag) const { return any(is_global_zero() && flag); }
  /// Reports that this rank has failed: the other ranks end with this reason.
  void abort(const std::string& reason) const;

  /// Runs f on rank zero while the others wait, then on the others, which find what the first created (a download, a
  /// folder). With `local`, per machine. If f throws on rank zero, the others proceed.
  template <class F>
  std::invoke_result_t<F> rank_zero_first(F&& f, bool local = false) const {
    const bool first = (local ? local_rank() : rank()) == 0;
    if (!first) {
      barrier();
      return f();
    }
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      release_after(f);
      barrier();
    } else {
      auto made = release_after(f);
      barrier();
      return made;
    }
  }

 protected:
  /// One process.
  explicit Strategy(Device device) : device_(device) {}
  /// One of the processes of a group.
  Strategy(Device device, const distributed::RankInfo& info, std::shared_ptr<distributed::ProcessGroup> group);
  /// The group of all ranks, to share; null with one process.
  const std::shared_ptr<distributed::ProcessGroup>& shared_group() const { return group_; }

 private:
  template <class F>
  auto release_after(F& f) const {
    try {
      return f();
    } catch (...) {
      barrier();
      throw;
    }
  }

  Device device_;
  std::shared_ptr<distributed::ProcessGroup> group_;
  int rank_ = 0, world_size_ = 1, local_rank_ = 0, node_rank_ = 0;
};

/// Processes and devices of a run; names, defaults and meanings are TrainerConfig's.
struct StrategyOptions {
  /// As in TrainerConfig.
  std::string strategy = "auto";
  std::string accelerator = "auto";
  DeviceList devices = "auto";
  std::int64_t num_nodes = 1;
  std::int64_t node_rank = -1;
  std::int64_t timeout = 300;
  std::string nccl_algo = "ring";
  DdpConfig ddp{};
  HorovodConfig horovod{};
  BaguaConfig bagua{};
  FsdpConfig fsdp{};
  PipelineConfig pipeline{};
};

/// "single" is one process on one device. "ddp" is one process per device: those that a launcher started (see
/// docs/distributed.md), else this process starts the others by re-executing the program, each of which joins at its
/// own call of this function. "horovod" is the same by Horovod's rules (levin/distributed/horovod.h), "bagua" by one of
/// Bagua's algorithms (levin/distributed/bagua.h); "pipeline" gives each process some layers of the network. "auto" is
/// ddp with several devices or machines. A process belongs to one such group, which all of its strategies share. Throws
/// UsageError for names that are not built, and the exceptions of distributed::join.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options);
/// Creates the strategy of one process on a known device.
std::unique_ptr<Strategy> make_strategy(const std::string& name, Device device = kCpu);

struct TrainerConfig;
/// Returns the fields of the configuration that a strategy needs.
StrategyOptions strategy_options(const TrainerConfig& config);

/// Throws UsageError for options that no strategy supports; starts nothing.
void check_strategy(const StrategyOptions& options);

/// Returns the devices of this machine selected by --accelerator ("auto", "cpu", "cuda", "gpu") and --devices; on the
/// CPU N devices are N processes. "auto" takes a GPU if the machine has one. Throws UsageError.
std::vector<Device> choose_devices(const std::string& accelerator, const DeviceList& devices);

}  // namespace levin
