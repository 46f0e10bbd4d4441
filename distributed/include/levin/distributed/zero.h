#pragma once
// Optimizers whose state and gradients are sharded over the ranks.
// S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (SC 2020), stages 1
// and 2. Stage 3 is FullyShardedDataParallel (fsdp.h).

#include <levin/core/owned_ptr.h>
#include <levin/distributed/process_group.h>
#include <levin/distributed/shard.h>
#include <levin/optim/optimizer.h>

namespace levin::distributed {

/// Options of ZeroRedundancyOptimizer; the same on all ranks.
struct ZeroOptions {
  /// 1: each rank keeps the optimizer state of its part of every parameter, and steps that part. 2: it also keeps the
  /// gradients of that part only.
  int stage = 1;
  double bucket_cap_mb = 25;  ///< size of a bucket (MiB)
  /// With stage 2: parameters that a step did not use count as zero, and one that no rank used has no gradient. Without
  /// this option a parameter that backward did not reach is an error.
  bool find_unused_parameters = false;
};

/// Number of bytes that one rank holds of parameters, of gradients, and of optimizer state.
struct HeldBytes {
  int64_t parameters = 0, gradients = 0, state = 0;
};

/// Shards an optimizer over the ranks of a group, whose parameters are the same (share_module):
///
///   share_module(net, *group);
///   optim::AdamW adam(net.parameters());
///   ZeroRedundancyOptimizer zero(adam, group, {.stage = 2});
///   cross_entropy(net(x), y).backward();  // this rank's part of the averages is ready when this returns
///   zero.step();                          // the same weights on all ranks
///
/// Parts are counted in elements, so a parameter may be larger than a part. Stage 1 uses the gradients of
/// DistributedDataParallel, and the result equals that of DDP bit by bit. Stage 2 averages gradients itself, in the
/// buckets that DDP has before it reorders them: the bits are those of DDP with two ranks, and with more ranks where
/// the buckets are the same.
class ZeroRedundancyOptimizer {
 public:
  /// The optimizer must outlive this object. Throws ValueError for another stage, and for an optimizer that is not
  /// elementwise or already has state.
  ZeroRedundancyOptimizer(optim::Optimizer& optimizer, std::shared_ptr<ProcessGroup> group,
                          const ZeroOptions& options = {});
  ~ZeroRedundancyOptimizer();
  ZeroRedundancyOptimizer(const ZeroRedundancyOptimizer&) = delete;
  ZeroRedundancyOptimizer& operator=(const ZeroRedundancyOptimizer&) = delete;

  /// Steps this rank's part and sends it to the others. Must be called on all ranks.
  void step();
  /// As Optimizer::step_unless; found_inf must be the same on all ranks.
  void step_unless(const Tensor& found_inf);
  /// As Optimizer::zero_grad; with stage 2 it removes the full gradients too.
  void zero_grad(bool set_to_none = true);
  /// As optim::clip_grad_norm_, by the norm of the full gradient.
  Tensor clip_grad_norm_(double max_norm, double norm_type = 2.0);
  /// With stage 2: while off, backward only accumulates this rank's gradients; the next exchange reduces the sum.
  void set_sync(bool on);
  /// With stage 2: reduces the gradients that were accumulated meanwhile. Must be called on all ranks.
  void reduce();
  /// Includes parameters that were added to the optimizer since.
  void take_parameters();

  /// The full optimizer state on rank 0, empty on other ranks. Must be called on all ranks.
  StateDict state_dict();
  /// Keeps this rank's part of a full state, saved with any number of ranks. Throws StateError.
  void load_state_dict(const StateDict& whole);
  /// This rank's shards of state_dict(), which share memory; what is not sharded is rank 0's. Does not communicate.
  std::vector<Shard> shards();

  // The parts of step(), for loops that step the optimizer themselves:
  void before_step();  ///< makes the optimizer step pieces (with stage 2 it always does)
  void after_step();   ///< gives it full parameters again, with the updates of all ranks
  /// Returns the parameters that the pieces belong to.
  std::vector<Parameter> full_parameters(std::vector<Parameter> pieces) const;
  /// True for a parameter that is sharded here, and for a piece of one.
  bool steps(const Parameter& parameter_or_piece) const;
  /// Returns the bytes that this rank holds now.
  HeldBytes held_bytes() const;
  /// 1 or 2, as in ZeroOptions.
  int stage() const;
  /// Number of exchanges so far that began while backward was running.
  int64_t overlapped() const;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

}  // namespace levin::distributed
