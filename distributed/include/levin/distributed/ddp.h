#pragma once
// Data parallelism: every rank has a replica of the module and its own part of the batch; gradients are averaged over
// the ranks while backward runs.
// S. Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training" (VLDB 2020).

#include <levin/distributed/comm_hooks.h>
#include <levin/nn/module.h>

namespace levin::distributed {

/// Options of DistributedDataParallel and Reducer, with PyTorch's defaults.
struct DistributedDataParallelOptions {
  double bucket_cap_mb = 25;   ///< size of the buckets in which gradients are reduced (MiB)
  double first_bucket_mb = 1;  ///< size of the bucket that is ready first; a small one lets communication begin early
  /// Parameters that a step did not use count as zero; one that no rank used keeps its gradient. Without this option a
  /// parameter that backward did not reach is an error.
  bool find_unused_parameters = false;
  /// The first exchange finds the unused parameters, and every later step must leave out the same ones: they are not
  /// searched for again, and buckets do not wait for them.
  bool static_graph = false;
  bool broadcast_buffers = true;  ///< broadcasts rank 0's buffers before each forward that follows an exchange
};

/// Averages gradients over the ranks of a group, bucket by bucket, in the same order on all ranks.
class Reducer {
 public:
  /// Takes the parameters that require grad. All ranks pass the same ones in the same order.
  Reducer(std::vector<Parameter> parameters, std::shared_ptr<ProcessGroup> group,
          const DistributedDataParallelOptions& options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// While off, backward only accumulates this rank's gradients; the next exchange reduces the sum.
  void set_sync(bool on);
  bool sync() const;  ///< initially true
  /// Uses this hook for buckets from the next backward on. All ranks register the same one. Throws ValueError for a
  /// second hook.
  void register_comm_hook(CommHook hook);

  /// Sets, for the following exchanges, the number of ranks that take part and the lowest of them. Averages are over
  /// all ranks of the group, with zeros for those that do not take part, or over those that do.
  void set_active(int ranks, int lowest, bool divide_by_all);
  /// Takes part in one exchange without gradients of its own. With `keep` the gradients become the averages of the
  /// others, else they are unchanged.
  void shadow(bool keep);

  /// Names of the parameters in each bucket, in the order of the exchange. After the first exchange it follows the
  /// order in which rank 0's gradients became ready.
  std::vector<std::vector<std::string>> buckets() const;
  /// Indices of the parameters in that order; empty before the first exchange. A reducer of another run that is given
  /// it before its first backward makes the same buckets, and so sums with the same bits.
  std::vector<int64_t> order() const;
  void set_order(const std::vector<int64_t>& order);
  /// Number of exchanges so far that began while backward was running.
  int64_t overlapped() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Options of DistributedDataParallel::join.
struct JoinOptions {
  /// Averages are over all ranks, with zeros for those without batches; else over the ranks that still have batches.
  bool divide_by_initial_world_size = true;
  /// Every rank throws DistributedError as soon as one rank has no more batches.
  bool throw_on_early_termination = false;
  /// Called on a rank without batches after each exchange of the others, with their averages as gradients: an optimizer
  /// step here keeps the optimizer's state (momentum) the same on all ranks.
  std::function<void()> shadow_step{};
};

/// Broadcasts rank 0's parameters and buffers to all ranks. Throws CollectiveMismatch, on every rank, where names,
/// shapes, dtypes or requires_grad differ.
void share_module(nn::Module& module, ProcessGroup& group);

/// Wraps a module for training on the ranks of a group:
///
///   DistributedDataParallel ddp(net, group);
///   cross_entropy(ddp(x), y).backward();  // gradients are averages when this returns
///   optimizer.step();                     // the same on all ranks
class DistributedDataParallel {
 public:
  /// Broadcasts the module's state by share_module, and throws what that throws.
  DistributedDataParallel(nn::Module& module, std::shared_ptr<ProcessGroup> group,
                          const DistributedDataParallelOptions& options = {});

  /// Calls before_forward() and then the module.
  Tensor operator()(const Tensor& x);
  /// The wrapped module, and the reducer of its gradients.
  nn::Module& module() { return module_; }
  Reducer& reducer() { return reducer_; }
  /// The part of operator() before forward, for modules whose forward takes other arguments: broadcasts the buffers if
  /// that is due.
  void before_forward();
  /// As Reducer::register_comm_hook.
  void register_comm_hook(CommHook hook) { reducer_.register_comm_hook(std::move(hook)); }

  /// Trains with different numbers of batches on the ranks: `body` is this rank's loop, in which each forward in
  /// training mode is followed by its backward and no other communication takes place. Ranks that have finished take
  /// part in the exchanges of the others with zeros. At the end all ranks have the parameters and buffers of a rank
  /// that had the most batches. Throws CollectiveMismatch where ranks differ in no_sync.
  void join(const std::function<void()>& body, const JoinOptions& options = {});
  /// Throws CollectiveMismatch, on every rank, if any rank's parameters differ from rank 0's in a bit; the error names
  /// these ranks.
  void check_parameters();

  /// Suppresses the exchange of gradients while the object lives.
  class NoSync {
   public:
    /// The reducer must outlive this object; the destructor restores its state.
    explicit NoSync(Reducer& reducer) : reducer_(reducer), old_(reducer.sync()) { reducer.set_sync(false); }
    ~NoSync() { reducer_.set_sync(old_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Reducer& reducer_;
    bool old_;
  };
  /// Returns an object that suppresses the exchange of gradients while it lives: backward then accumulates this rank's
  /// gradients, and the next exchange averages the sums.
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

/// Broadcasts the tensors of `root`, in a few large messages.
void broadcast_all(ProcessGroup& group, const std::vector<Tensor>& tensors, int root = 0);
/// Returns rank 0's text on every rank.
std::string broadcast_text(ProcessGroup& group, const std::string& own);

}  // namespace levin::distributed
