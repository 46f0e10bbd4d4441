#pragma once
// Strategies: how many processes and devices take part. Independent of precision.

#include <levin/core/state_map.h>
#include <levin/data/batch.h>
#include <levin/distributed/reduce_op.h>
#include <levin/distributed/shard.h>
#include <levin/nn/module.h>
#include <levin/trainer/limits.h>
#include <levin/trainer/strategy_config.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace levin {

namespace distributed {
class ProcessGroup;
}
class LevinModule;
class Optimizers;

using distributed::ReduceOp;

/// Callbacks into StepRunner for strategies that run the forwards and backwards of a batch's parts in their own order.
class BatchParts {
 public:
  virtual ~BatchParts() = default;
  /// Runs training_step on part `number` and returns its share of the batch's loss, for backward().
  virtual Tensor forward(std::size_t number, const Batch& part) = 0;
  virtual void backward(const Tensor& share) = 0;
  /// Runs training_step on a rank that needs only its beginning and ends it by an exception; logged values are dropped.
  virtual void begin(const Batch& part) = 0;
  /// Runs layers in the precision's types.
  virtual Tensor compute(const std::function<Tensor()>& layers) = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  virtual Device device() const = 0;  ///< device of this process
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual int local_rank() const = 0;  ///< rank among the processes of this machine
  virtual int node_rank() const = 0;   ///< index of this machine
  bool is_global_zero() const { return rank() == 0; }
  /// Group of all ranks, for custom collectives; null with one process.
  virtual distributed::ProcessGroup* process_group() const { return nullptr; }

  /// Moves the module to the device, before the optimizers are created. Broadcasts rank zero's weights and buffers.
  virtual void setup(nn::Module& module) = 0;
  /// Called when the optimizers are created, before a checkpoint is loaded into them.
  virtual void setup_optimizers(const Optimizers&) {}
  /// Called when parameters were added to an optimizer.
  virtual void take_parameters(const Optimizers&) {}
  /// Makes batch norm use the statistics of all ranks. Throws UsageError if that is not built.
  virtual void sync_batchnorm(nn::Module&) {}
  /// Called before the optimizers are destroyed.
  virtual void release_optimizers() {}
  /// Called after a completed run: makes the module the same as with one process.
  virtual void finish(nn::Module&) {}
  virtual Batch to_device(Batch batch) const = 0;

  /// Number of devices of this process that hold a copy of the module.
  virtual std::size_t replicas() const { return 1; }
  /// Step of the module or a replica on its part of a batch; `number` is below replicas().
  using ReplicaStep = std::function<std::vector<Tensor>(std::size_t number, LevinModule& replica, const Batch& part)>;
  /// Runs `step` on all replicas. The results are concatenated on device() along dimension 0, part after part; scalars
  /// become rows.
  virtual std::vector<Tensor> on_replicas(LevinModule& module, const Batch& batch, const ReplicaStep& step) {
    return step(0, module, batch);
  }
  /// True if sync_dist reaches other ranks.
  virtual bool shares_logs() const { return true; }
  /// Number of ranks that share the data. If 1, all ranks read the same batches and log the same values.
  virtual int data_ranks() const { return world_size(); }

  /// True if ranks hold consecutive layers of the network; a training step is then run_batch().
  virtual bool has_stages() const { return false; }
  /// Runs forward and backward of one batch. Collective; only rank zero has the loss.
  virtual void run_batch(const Batch&, BatchParts&) {}

  /// Broadcasts rank zero's buffers; called before a forward in training and before an evaluation.
  virtual void share_buffers(nn::Module& module) = 0;
  /// Called before the backward that closes an accumulation window: that backward reduces the gradients of these
  /// parameters while it runs. Any other backward leaves gradients local.
  virtual void reduce_in_backward(const std::vector<Parameter>& parameters) = 0;
  /// Makes the gradients of these parameters averages over the ranks: waits for those that backward reduced, or, if
  /// none did, averages the accumulated gradients.
  virtual void finish_reduction(const std::vector<Parameter>& parameters) = 0;
  /// True if averaged gradients may accumulate another backward and be averaged again before a step.
  virtual bool may_average_again() const { return false; }
  /// Called around a step of the optimizer of these parameters, when gradients are unscaled and clipped; also around
  /// steps that the scaler skips.
  virtual void before_step(const std::vector<Parameter>&) {}
  virtual void after_step(const std::vector<Parameter>&) {}
  /// Called on all ranks after the last step of a fit: completes all pending communication.
  virtual void end_training() {}
  /// True if ranks have their own weights and optimizers during training: a checkpoint then stores those of each rank,
  /// and their average as the model's.
  virtual bool replicas_differ() const { return false; }
  /// Returns the average of the ranks' tensors under these names, bitwise equal on all ranks; returns `own` if replicas
  /// do not differ. Collective.
  virtual StateDict consensus(const StateDict& own) { return own; }
  /// Additional state that a resumed run needs; the same on all ranks.
  virtual StateMap state() { return {}; }
  virtual void load_state(const StateMap&) {}

  // Sharded strategies. Optimizers then step one-dimensional shards of parameters, or a subset of the parameters.
  virtual bool divides_state() const { return false; }    ///< optimizer state is sharded
  virtual bool divides_weights() const { return false; }  ///< weights are sharded too
  /// True if this rank computes with and steps a parameter of the module.
  virtual bool has(const Tensor& /*parameter*/) const { return true; }
  /// Gathers entries that each belong to one rank: all of them, on rank zero, in any order. Collective.
  virtual StateDict joined(const StateDict& own) const { return own; }
  /// Returns the module's parameters of which an optimizer's parameters are shards.
  virtual std::vector<Parameter> whole_of(std::vector<Parameter> parameters) const { return parameters; }
  /// Called in addition to the optimizer's own zero_grad.
  virtual void zero_grad(const std::vector<Parameter>&) {}
  /// Like optim::clip_grad_norm_, using the norm over all ranks.
  virtual void clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm);
  /// Converts norms of type `type`, one per shard, to those of the full gradients. Collective.
  virtual Tensor whole_norms(const Tensor& norms, double /*type*/) const { return norms; }
  /// Returns the full optimizer state as with one process, on rank zero, so that any number of ranks can resume from
  /// it. Collective. Loading keeps this rank's shard.
  virtual StateDict optimizer_state(const Optimizers& optimizers);
  virtual void load_optimizer_state(Optimizers& optimizers, const StateDict& whole);
  /// The same for weights; called only if the strategy shards them. An undefined tensor keeps the current values.
  virtual StateDict weights(const nn::Module& module) const { return module.state_dict(); }
  virtual void load_weights(nn::Module& module, const StateDict& whole) { module.load_state_dict(whole); }

  /// True if each rank writes its own part of a checkpoint, so that no rank has to hold the full state.
  virtual bool saves_shards() const { return false; }
  /// This rank's shards of the optimizers' state, and of the weights if they are sharded. Not collective.
  virtual std::vector<distributed::Shard> optimizer_shards(const Optimizers&) { return {}; }
  virtual std::vector<distributed::Shard> weight_shards(const nn::Module&) const { return {}; }

  virtual double reduce(double value, ReduceOp op) = 0;
  /// The same for a tensor, on its device; asynchronous to the host.
  virtual Tensor reduce(const Tensor& value, ReduceOp op) = 0;
  /// Returns the value of rank `src` on every rank. The tensor must have the same sizes and type on all ranks.
  virtual Tensor broadcast(const Tensor& value, int src) = 0;
  virtual StateMap broadcast(const StateMap& values, int src) = 0;
  /// Returns the tensors of all ranks, (world_size, ...) with several ranks; with one rank its tensor unchanged, as in
  /// Lightning. With `sync_grads` gradients flow back to each rank's tensor.
  virtual Tensor all_gather(const Tensor& value, bool sync_grads) = 0;
  virtual void barrier() = 0;
  /// Returns the maps of all ranks, by rank.
  virtual std::vector<StateMap> gather(const StateMap& own) = 0;
  /// Logical or over the ranks: sets each flag (nonzero) that any rank has set. All ranks pass the same number of
  /// flags.
  virtual void any(std::span<std::uint8_t> flags) = 0;
  bool any(bool flag) {
    std::uint8_t one = flag ? 1 : 0;
    any(std::span(&one, 1));
    return one != 0;
  }
  /// Returns rank zero's flag.
  bool of_rank_zero(bool flag) { return any(is_global_zero() && flag); }
  /// Reports that this rank has failed: the other ranks end with this reason.
  virtual void abort(const std::string& reason) = 0;

  /// Runs f on rank zero while the others wait, then on the others, which find what the first created (a download, a
  /// folder). With `local`, per machine. If f throws on rank zero, the others proceed.
  template <class F>
  std::invoke_result_t<F> rank_zero_first(F&& f, bool local = false) {
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

 private:
  template <class F>
  auto release_after(F& f) {
    try {
      return f();
    } catch (...) {
      barrier();
      throw;
    }
  }
};

/// Processes and devices of a run; names, defaults and meanings are TrainerConfig's.
struct StrategyOptions {
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
StrategyOptions strategy_options(const TrainerConfig& config);

/// Throws UsageError for options that no strategy supports; starts nothing.
void check_strategy(const StrategyOptions& options);

/// Returns the devices of this machine selected by --accelerator ("auto", "cpu", "cuda", "gpu") and --devices; on the
/// CPU N devices are N processes. "auto" takes a GPU if the machine has one. Throws UsageError.
std::vector<Device> choose_devices(const std::string& accelerator, const DeviceList& devices);

}  // namespace levin
