#pragma once
// Local SGD: each rank steps on its own gradients, and every few steps the ranks average their weights. The parts and
// their names are those of torch.distributed.algorithms.model_averaging and of PyTorch's post_localSGD_hook.
// T. Lin, S. U. Stich, K. K. Patel, M. Jaggi, "Don't Use Large Mini-Batches, Use Local SGD" (ICLR 2020).

#include <levin/core/state_dict.h>
#include <levin/distributed/comm_hooks.h>

#include <memory>
#include <vector>

namespace levin::distributed {

/// Every parameter becomes its average over the ranks, with the same bits on all of them. All ranks call it with the
/// same parameters in the same order; those of one dtype and device travel in one message.
void average_parameters(ProcessGroup& group, const std::vector<Parameter>& parameters);

struct PeriodicModelAveragerOptions {
  int64_t period = 0;        ///< steps from one average to the next; must be given, 1 or more
  int64_t warmup_steps = 0;  ///< steps before the first average, in which gradients should be averaged instead
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
/// With period 1 and SGD the weights are those of averaged gradients, at no smaller cost: use DDP alone then.
class PeriodicModelAverager {
 public:
  /// Throws ValueError for a period below 1 or negative warmup_steps.
  PeriodicModelAverager(std::shared_ptr<ProcessGroup> group, const PeriodicModelAveragerOptions& options);
  /// To be called after each step of the optimizer, on all ranks.
  void average_parameters(const std::vector<Parameter>& parameters);

  /// Steps until now: a resumed run goes on with this number.
  int64_t step() const { return step_; }
  void set_step(int64_t step) { step_ = step; }

 private:
  std::shared_ptr<ProcessGroup> group_;
  PeriodicModelAveragerOptions options_;
  int64_t step_ = 0;
};

struct PostLocalSgdOptions {
  int64_t start_local_sgd_iter = 0;  ///< exchanges before this many are averages over all ranks
  /// From then on gradients are averaged over `subgroup`, the ranks that are near each other; false: over nobody.
  bool post_local_gradient_allreduce = true;
  std::shared_ptr<ProcessGroup> subgroup{};
};

/// PyTorch's post_localSGD_hook with its PostLocalSGDState: plain averages of the gradients at first, then those of a
/// subgroup, or none. Register it on every rank and average the weights by PeriodicModelAverager, whose warmup_steps
/// are start_local_sgd_iter. Copies share one state.
class PostLocalSgd {
 public:
  /// Throws ValueError for a negative start_local_sgd_iter, and where gradients shall be averaged over a subgroup and
  /// none is given.
  explicit PostLocalSgd(const PostLocalSgdOptions& options);
  CommStages operator()(ProcessGroup& group, const GradBucket& bucket) const;

  /// Exchanges until now: a resumed run goes on with this number.
  int64_t iter() const;
  void set_iter(int64_t iter) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace levin::distributed
