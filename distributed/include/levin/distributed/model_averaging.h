#pragma once
// Local SGD: each rank steps on its own gradients, and every few steps the ranks average their weights. Classes and
// names follow torch.distributed.algorithms.model_averaging and PyTorch's post_localSGD_hook.
// T. Lin, S. U. Stich, K. K. Patel, M. Jaggi, "Don't Use Large Mini-Batches, Use Local SGD" (ICLR 2020).

#include <levin/core/state_dict.h>
#include <levin/distributed/comm_hooks.h>

#include <memory>
#include <vector>

namespace levin::distributed {

/// Replaces every parameter by its average over the ranks, with the same bits on all of them. All ranks pass the same
/// parameters in the same order; those of one dtype and device share a message.
void average_parameters(ProcessGroup& group, const std::vector<Parameter>& parameters);

/// Options of PeriodicModelAverager.
struct PeriodicModelAveragerOptions {
  int64_t period = 0;        ///< number of steps between two averages; must be given, 1 or more
  int64_t warmup_steps = 0;  ///< number of steps before the first average; gradients should be averaged in them instead
};

/// Averages the parameters after step `warmup_steps` (counted from 0) and after every `period`-th step from there:
///
///   PeriodicModelAverager averager(group, {.period = 4, .warmup_steps = 100});
///   ddp.register_comm_hook(PostLocalSgd({.start_local_sgd_iter = 100, .post_local_gradient_allreduce = false}));
///   for (...) {
///     loss(ddp(x)).backward();
///     optimizer.step();
///     averager.average_parameters(net.parameters());
///   }
///
/// With period 1 and SGD the weights equal those of averaged gradients, at no smaller cost: use DDP alone then.
class PeriodicModelAverager {
 public:
  /// Throws ValueError for a period below 1 or negative warmup_steps.
  PeriodicModelAverager(std::shared_ptr<ProcessGroup> group, const PeriodicModelAveragerOptions& options);
  /// Counts a step and averages the parameters if that is due. Must be called after each optimizer step, on all ranks.
  void average_parameters(const std::vector<Parameter>& parameters);

  /// Number of steps so far; a resumed run restores it.
  int64_t step() const { return step_; }
  void set_step(int64_t step) { step_ = step; }

 private:
  std::shared_ptr<ProcessGroup> group_;
  PeriodicModelAveragerOptions options_;
  int64_t step_ = 0;
};

/// Options of PostLocalSgd, with the names of PyTorch's PostLocalSGDState.
struct PostLocalSgdOptions {
  int64_t start_local_sgd_iter = 0;  ///< number of initial exchanges that average over all ranks
  /// Later gradients are averaged over `subgroup`, e.g. the ranks of one machine, or if false not at all.
  bool post_local_gradient_allreduce = true;
  std::shared_ptr<ProcessGroup> subgroup{};
};

/// PyTorch's post_localSGD_hook with its PostLocalSGDState: averages gradients over all ranks at first, then over a
/// subgroup or not at all. Register it on every rank and average the weights with a PeriodicModelAverager whose
/// warmup_steps equal start_local_sgd_iter. Copies share one state.
class PostLocalSgd {
 public:
  /// Throws ValueError for a negative start_local_sgd_iter, and where gradients are to be averaged over a subgroup but
  /// none is given.
  explicit PostLocalSgd(const PostLocalSgdOptions& options);
  /// The communication hook: see CommHook.
  CommStages operator()(ProcessGroup& group, const GradBucket& bucket) const;

  /// Number of exchanges so far; a resumed run restores it.
  int64_t iter() const;
  void set_iter(int64_t iter) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace levin::distributed
