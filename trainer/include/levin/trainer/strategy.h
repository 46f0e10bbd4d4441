#pragma once
// How many processes and devices take part. Knows nothing of precision.

#include <levin/core/state_map.h>
#include <levin/data/batch.h>
#include <levin/distributed/reduce_op.h>
#include <levin/distributed/shard.h>
#include <levin/nn/module.h>
#include <levin/trainer/limits.h>

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

/// What StepRunner does with the parts of a batch for a strategy that takes their forwards and backwards in an order of
/// its own.
class BatchParts {
 public:
  virtual ~BatchParts() = default;
  /// training_step of part `number`: its share of the batch's loss, for backward().
  virtual Tensor forward(std::size_t number, const Batch& part) = 0;
  virtual void backward(const Tensor& share) = 0;
  /// training_step on a rank that wants its beginning alone, and ends it by an exception; what it logs is dropped.
  virtual void begin(const Batch& part) = 0;
  /// Runs layers in the precision's types.
  virtual Tensor compute(const std::function<Tensor()>& layers) = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  virtual Device device() const = 0;  ///< of this process
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual int local_rank() const = 0;  ///< among the processes of this machine
  virtual int node_rank() const = 0;   ///< of this machine among all
  bool is_global_zero() const { return rank() == 0; }
  /// The group of all ranks, for collectives of the program's own; null where there is one process.
  virtual distributed::ProcessGroup* process_group() const { return nullptr; }

  /// Puts the module on the device, before the optimizers are made. Weights and buffers of all ranks become rank
  /// zero's.
  virtual void setup(nn::Module& module) = 0;
  /// When the optimizers are made, before a checkpoint is loaded into them.
  virtual void setup_optimizers(const Optimizers&) {}
  /// When one of them got more parameters.
  virtual void take_parameters(const Optimizers&) {}
  /// Batch norm of this module takes its statistics from all ranks. Throws UsageError where that is not built.
  virtual void sync_batchnorm(nn::Module&) {}
  /// Before they are gone.
  virtual void release_optimizers() {}
  /// After a run that has come to its end: the module is what it is with one process.
  virtual void finish(nn::Module&) {}
  virtual Batch to_device(Batch batch) const = 0;

  /// How many devices of this process have a copy of the module.
  virtual std::size_t replicas() const { return 1; }
  /// A step of the module or a replica with its part of a batch; `number` is below replicas().
  using ReplicaStep = std::function<std::vector<Tensor>(std::size_t number, LevinModule& replica, const Batch& part)>;
  /// Runs it on all replicas. What they give is joined on device() along its first dimension, part after part; a number
  /// of each becomes a row.
  virtual std::vector<Tensor> on_replicas(LevinModule& module, const Batch& batch, const ReplicaStep& step) {
    return step(0, module, batch);
  }
  /// Whether sync_dist reaches other ranks.
  virtual bool shares_logs() const { return true; }
  /// Among how many ranks data are shared out. With 1 all ranks read the same batches, and log the same values.
  virtual int data_ranks() const { return world_size(); }

  /// Whether ranks have the network's layers one behind the other: a training step is run_batch() then.
  virtual bool has_stages() const { return false; }
  /// Forward and backward of one batch, on all ranks. Rank zero alone has the loss.
  virtual void run_batch(const Batch&, BatchParts&) {}

  /// Before a forward in training, and before an evaluation: buffers of all ranks become rank zero's.
  virtual void share_buffers(nn::Module& module) = 0;
  /// Before the backward that closes an accumulation window: it exchanges the gradients of these parameters while it
  /// runs. Any other backward leaves gradients as they are.
  virtual void reduce_in_backward(const std::vector<Parameter>& parameters) = 0;
  /// When it returns, the gradients of these parameters are averages over the ranks: those that a backward has
  /// exchanged, or, where none has, what any number of backwards have gathered.
  virtual void finish_reduction(const std::vector<Parameter>& parameters) = 0;
  /// Whether averages may gather more in another backward, and be averaged again, before a step.
  virtual bool may_average_again() const { return false; }
  /// Around a step of the optimizer of these parameters, when gradients are unscaled and clipped. Steps that a scaler
  /// leaves out are among them.
  virtual void before_step(const std::vector<Parameter>&) {}
  virtual void after_step(const std::vector<Parameter>&) {}
  /// After the last step of a fit, on all ranks: nothing is under way when it returns.
  virtual void end_training() {}
  /// Whether ranks have weights and optimizers of their own while they train: a checkpoint then holds those of each,
  /// and their average as the model's.
  virtual bool replicas_differ() const { return false; }
  /// The average of what such ranks have by these names, the same bits on all of them, who all call it; `own` where
  /// replicas do not differ.
  virtual StateDict consensus(const StateDict& own) { return own; }
  /// What else a resumed run goes on with; the same on all ranks.
  virtual StateMap state() { return {}; }
  virtual void load_state(const StateMap&) {}

  // Where ranks have parts of what one process has whole. Optimizers then step pieces of parameters, of one dimension,
  // or some of the parameters.
  virtual bool divides_state() const { return false; }    ///< of optimizers
  virtual bool divides_weights() const { return false; }  ///< too
  /// Whether this rank computes with a parameter of the module, and steps it.
  virtual bool has(const Tensor& /*parameter*/) const { return true; }
  /// Of entries that each are some rank's: all, on rank zero, in any order. All ranks call.
  virtual StateDict joined(const StateDict& own) const { return own; }
  /// The module's parameters that those of an optimizer are pieces of.
  virtual std::vector<Parameter> whole_of(std::vector<Parameter> parameters) const { return parameters; }
  /// Beside the optimizer's own zero_grad.
  virtual void zero_grad(const std::vector<Parameter>&) {}
  /// As optim::clip_grad_norm_, by the norm of what all ranks have.
  virtual void clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm);
  /// Norms of type `type`, one a piece, as those of the whole gradients. All ranks call.
  virtual Tensor whole_norms(const Tensor& norms, double /*type*/) const { return norms; }
  /// The optimizers' state as one process has it, so that any number of ranks goes on from it; whole on rank zero. All
  /// ranks call. Loading keeps this rank's part.
  virtual StateDict optimizer_state(const Optimizers& optimizers);
  virtual void load_optimizer_state(Optimizers& optimizers, const StateDict& whole);
  /// The same for weights; asked only of strategies that divide them. An undefined tensor keeps what is there.
  virtual StateDict weights(const nn::Module& module) const { return module.state_dict(); }
  virtual void load_weights(nn::Module& module, const StateDict& whole) { module.load_state_dict(whole); }

  /// Whether each rank writes its own part of a checkpoint, so that no rank has to hold the whole.
  virtual bool saves_shards() const { return false; }
  /// That part of the optimizers' state, and, where ranks divide weights, of those. Without other ranks.
  virtual std::vector<distributed::Shard> optimizer_shards(const Optimizers&) { return {}; }
  virtual std::vector<distributed::Shard> weight_shards(const nn::Module&) const { return {}; }

  virtual double reduce(double value, ReduceOp op) = 0;
  /// The same for a tensor where it lies; the host does not wait.
  virtual Tensor reduce(const Tensor& value, ReduceOp op) = 0;
  /// What rank `src` has, on every rank. The tensor has the same sizes and type on all of them.
  virtual Tensor broadcast(const Tensor& value, int src) = 0;
  virtual StateMap broadcast(const StateMap& values, int src) = 0;
  /// The tensors of all ranks, (world_size, ...) where there are several; one rank's has its own sizes, as Lightning's.
  /// With `sync_grads` a gradient goes back to each rank's own.
  virtual Tensor all_gather(const Tensor& value, bool sync_grads) = 0;
  virtual void barrier() = 0;
  /// The maps of all ranks, by rank.
  virtual std::vector<StateMap> gather(const StateMap& own) = 0;
  /// Flags become set (not 0) where any rank's are; as many on all of them.
  virtual void any(std::span<std::uint8_t> flags) = 0;
  bool any(bool flag) {
    std::uint8_t one = flag ? 1 : 0;
    any(std::span(&one, 1));
    return one != 0;
  }
  /// Rank zero's.
  bool of_rank_zero(bool flag) { return any(is_global_zero() && flag); }
  /// This rank has failed: the others end, with these words.
  virtual void abort(const std::string& reason) = 0;

  /// Runs f on rank zero while the others wait, then on them: what the first makes (a download, a folder), the others
  /// find. `local`: by machine. Where rank zero's throws, the others go on to theirs.
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

/// Which processes on which devices; names, defaults and meanings are TrainerConfig's.
struct StrategyOptions {
  std::string strategy = "auto";
  std::string accelerator = "auto";
  DeviceList devices = "auto";
  std::int64_t num_nodes = 1;
  std::int64_t node_rank = -1;
  std::int64_t timeout = 300;
  std::string nccl_algo = "ring";
  std::string ddp_comm_hook = "none";
  std::int64_t model_averaging_period = 0;
  std::int64_t start_local_sgd_iter = 0;
  bool post_local_gradient_allreduce = true;
  bool scale_lr = true;
  std::string gradient_compression = "none";
  std::optional<double> fusion_threshold_mb{};
  std::optional<double> cycle_time_ms{};
  std::string bagua_algorithm = "gradient_allreduce";
  std::string bagua_peers = "all";
  std::string bagua_scale_lr = "none";
  std::int64_t bagua_warmup_steps = 0;
  std::int64_t bagua_sync_interval_ms = 500;
  std::int64_t fsdp_unit_size = 100'000;
  std::string fsdp_state_dict_type = "full";
  std::int64_t pipeline_micro_batches = 4;
  std::string pipeline_balance{};
};

/// "single" is one process on one device. "ddp" is one process a device: those that a launcher has started (see
/// docs/distributed.md), else this one and others that it starts here by executing the program again, each at its own
/// call of this function. "horovod" is the same by Horovod's rules (levin/distributed/horovod.h), "bagua" by one of
/// Bagua's algorithms (levin/distributed/bagua.h); "pipeline" gives each process some layers of the network. "auto" is
/// ddp where there are several devices or machines. A process belongs to one such group, which all of its strategies
/// share. Throws UsageError for names that are not built, and what distributed::join throws.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options);
/// The same for one process on a device that is known.
std::unique_ptr<Strategy> make_strategy(const std::string& name, Device device = kCpu);

struct TrainerConfig;
StrategyOptions strategy_options(const TrainerConfig& config);

/// Throws UsageError for options for which there is no strategy; starts nothing.
void check_strategy(const StrategyOptions& options);

/// The devices of this machine that --accelerator ("auto", "cpu", "cuda", "gpu") and --devices stand for; on the CPU N
/// devices are N processes. "auto" takes a GPU where the machine has one. Throws UsageError.
std::vector<Device> choose_devices(const std::string& accelerator, const DeviceList& devices);

}  // namespace levin
