#pragma once
// Optimizers whose state, and gradients, are divided among the ranks.
// S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (SC 2020), stages 1
// and 2. Stage 3 is FullyShardedDataParallel (fsdp.h).

#include <levin/core/owned_ptr.h>
#include <levin/distributed/process_group.h>
#include <levin/distributed/shard.h>
#include <levin/optim/optimizer.h>

namespace levin::distributed {

struct ZeroOptions {
  /// 1: each rank keeps the state of its part of every parameter, and steps that part. 2: it also keeps the gradients
  /// of that part only.
  int stage = 1;
  double bucket_cap_mb = 25;  ///< what is exchanged at once (MiB)
  /// Of stage 2: parameters that a step did not use count as zero, and one that no rank used has no gradient. Without
  /// it a parameter that backward did not reach is an error.
  bool find_unused_parameters = false;
};

/// Bytes that one rank holds.
struct HeldBytes {
  int64_t parameters = 0, gradients = 0, state = 0;
};

/// Divides what an optimizer needs among the ranks of a group, whose parameters are the same (share_module):
///
///   share_module(net, *group);
///   optim::AdamW adam(net.parameters());
///   ZeroRedundancyOptimizer zero(adam, group, {.stage = 2});
///   cross_entropy(net(x), y).backward();  // this rank's part of the averages is there when this returns
///   zero.step();                          // the same weights on all ranks
///
/// Parts are counted in elements, so that a parameter larger than a share is no harm. With stage 1 gradients are what
/// DistributedDataParallel makes of them, and the result has its bits. Stage 2 averages by itself, in buckets that are
/// those of DistributedDataParallel before it reorders them; with two ranks the bits are the same anyway, and with more
/// where the buckets are.
class ZeroRedundancyOptimizer {
 public:
  /// The optimizer outlives this. Throws ValueError for another stage, for an optimizer that is not elementwise or has
  /// made state already.
  ZeroRedundancyOptimizer(optim::Optimizer& optimizer, std::shared_ptr<ProcessGroup> group,
                          const ZeroOptions& options = {});
  ~ZeroRedundancyOptimizer();
  ZeroRedundancyOptimizer(const ZeroRedundancyOptimizer&) = delete;
  ZeroRedundancyOptimizer& operator=(const ZeroRedundancyOptimizer&) = delete;

  /// Steps this rank's part and gives it to the others. All ranks call.
  void step();
  /// As Optimizer::step_unless; found_inf is the same on all ranks.
  void step_unless(const Tensor& found_inf);
  void zero_grad(bool set_to_none = true);
  /// As optim::clip_grad_norm_, by the norm of the whole gradient.
  Tensor clip_grad_norm_(double max_norm, double norm_type = 2.0);
  /// Of stage 2: while off, backward only adds up this rank's gradients; the next exchange carries the sum.
  void set_sync(bool on);
  /// Of stage 2: exchanges what backwards have added up meanwhile. All ranks call.
  void reduce();
  /// Takes in parameters that the optimizer got since.
  void take_parameters();

  /// The state as the optimizer has it by itself, whole on rank 0 and empty elsewhere. All ranks call.
  StateDict state_dict();
  /// Keeps this rank's part of such a state, saved by any number of ranks. Throws StateError.
  void load_state_dict(const StateDict& whole);
  /// What this rank has of state_dict(), as handles; what is not divided is rank 0's. Asks no other rank.
  std::vector<Shard> shards();

  // What step() is made of, for loops that step the optimizer themselves
  void before_step();  ///< the optimizer steps pieces from here on (with stage 2 it always does)
  void after_step();   ///< and has whole parameters again; all ranks have all updates
  /// The parameters in place of pieces of them.
  std::vector<Parameter> whole_of(std::vector<Parameter> pieces) const;
  bool steps(const Parameter& parameter_or_piece) const;
  HeldBytes held_bytes() const;
  int stage() const;
  /// Exchanges that began while backward was still running.
  int64_t overlapped() const;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

}  // namespace levin::distributed
