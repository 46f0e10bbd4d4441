#pragma once
// Data parallelism: every rank has a replica of the module and its own part of the batch; gradients are averaged over
// the ranks while backward still runs.
// S. Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training" (VLDB 2020).

#include <levin/distributed/comm_hooks.h>
#include <levin/nn/module.h>

namespace levin::distributed {

struct DistributedDataParallelOptions {
  double bucket_cap_mb = 25;   ///< gradients travel together in buckets of about this size (MiB)
  double first_bucket_mb = 1;  ///< of the bucket that is ready first, so that the exchange begins early
  /// Parameters that a step did not use count as zero; one that no rank used keeps its gradient as it is. Without it a
  /// parameter that backward did not reach is an error.
  bool find_unused_parameters = false;
  /// The first exchange finds the unused parameters, and every later step must leave out the same ones: they need not
  /// be found again, and buckets do not wait for them.
  bool static_graph = false;
  bool broadcast_buffers = true;  ///< rank 0's buffers are everybody's before each forward that follows an exchange
};

/// Averages gradients over the ranks of a group, one bucket after the other, in the same order on all ranks.
class Reducer {
 public:
  /// Takes the parameters that require grad. All ranks give the same ones in the same order.
  Reducer(std::vector<Parameter> parameters, std::shared_ptr<ProcessGroup> group,
          const DistributedDataParallelOptions& options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// While off, backward only adds up this rank's gradients; the next exchange carries the sum.
  void set_sync(bool on);
  bool sync() const;
  /// Buckets travel by this hook from the next backward on. All ranks register the same one; throws ValueError for a
  /// second one.
  void register_comm_hook(CommHook hook);

  /// Of the following exchanges: the ranks that have a part in them, and the lowest of those. Averages are over all
  /// ranks of the group, those without a part counting as zero, or else over those that have one.
  void set_active(int ranks, int lowest, bool divide_by_all);
  /// Takes part in one exchange without gradients of its own. `keep`: gradients become the averages of the others;
  /// otherwise they are left alone.
  void shadow(bool keep);

  /// Names of the parameters in each bucket, in the order of the exchange. After the first exchange it follows the
  /// order in which rank 0's gradients became ready.
  std::vector<std::vector<std::string>> buckets() const;
  /// Places of the parameters in that order; empty before the first exchange. A reducer of another run that is given it
  /// before its first backward has the same buckets, and so sums of the same bits.
  std::vector<int64_t> order() const;
  void set_order(const std::vector<int64_t>& order);
  /// Exchanges that began while backward was still running, since the start.
  int64_t overlapped() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

struct JoinOptions {
  /// Averages are over all ranks, those without batches counting as zero; else over those that still have some.
  bool divide_by_initial_world_size = true;
  /// Every rank throws DistributedError as soon as one has no more batches.
  bool throw_on_early_termination = false;
  /// Called on a rank without batches after each exchange of the others, its gradients being theirs: an optimizer's
  /// step here keeps that optimizer's state (momentum) the same on all ranks.
  std::function<void()> shadow_step{};
};

/// Parameters and buffers of all ranks become those of rank 0. Throws CollectiveMismatch, on every rank, where names,
/// shapes, dtypes or requires_grad differ.
void share_module(nn::Module& module, ProcessGroup& group);

/// Wraps a module for training on the ranks of a group:
///
///   DistributedDataParallel ddp(net, group);
///   cross_entropy(ddp(x), y).backward();  // gradients are averages when this returns
///   optimizer.step();                     // the same on all ranks
class DistributedDataParallel {
 public:
  /// Shares the module as share_module does, and throws as it does.
  DistributedDataParallel(nn::Module& module, std::shared_ptr<ProcessGroup> group,
                          const DistributedDataParallelOptions& options = {});

  Tensor operator()(const Tensor& x);
  nn::Module& module() { return module_; }
  Reducer& reducer() { return reducer_; }
  /// What operator() does first, for modules whose forward takes other arguments.
  void before_forward();
  void register_comm_hook(CommHook hook) { reducer_.register_comm_hook(std::move(hook)); }

  /// Training with another number of batches on each rank: `body` is this rank's loop, in which each forward in
  /// training mode is followed by its backward and nothing else is exchanged. Ranks that are through take part in the
  /// exchanges of the others with zeros. In the end the parameters and buffers of all are those of a rank that had the
  /// most batches. Ranks differ in no_sync: CollectiveMismatch.
  void join(const std::function<void()>& body, const JoinOptions& options = {});
  /// Throws CollectiveMismatch, on every rank, that names the ranks whose parameters are not those of rank 0 to the
  /// bit.
  void check_parameters();

  /// Gradients are not exchanged while the object lives.
  class NoSync {
   public:
    explicit NoSync(Reducer& reducer) : reducer_(reducer), old_(reducer.sync()) { reducer.set_sync(false); }
    ~NoSync() { reducer_.set_sync(old_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Reducer& reducer_;
    bool old_;
  };
  [[nodiscard]] NoSync no_sync() { return NoSync(reducer_); }

 private:
  struct Step;
  class Joining;
  Step announce(bool active);
  std::vector<Tensor> buffers() const;

  nn::Module& module_;
  std::shared_ptr<ProcessGroup> group_;
  bool broadcast_buffers_, buffers_due_ = false;
  const JoinOptions* joining_ = nullptr;
  int lowest_active_ = 0;  // in the last step of a join
  Reducer reducer_;
};

/// The tensors of all ranks become those of `root`, a few large messages instead of many small ones.
void broadcast_all(ProcessGroup& group, const std::vector<Tensor>& tensors, int root = 0);
/// The text that rank 0 gives, on every rank.
std::string broadcast_text(ProcessGroup& group, const std::string& own);

}  // namespace levin::distributed
