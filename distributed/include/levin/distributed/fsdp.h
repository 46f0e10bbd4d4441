#pragma once
// Parameters, gradients and optimizer state sharded over the ranks: ZeRO stage 3.
// Y. Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel" (VLDB 2023).

#include <levin/distributed/zero.h>
#include <levin/nn/module.h>

namespace levin::distributed {

/// Options of FullyShardedDataParallel; the same on all ranks.
struct FullyShardedOptions {
  /// A module becomes a unit, which is gathered as one, if it has at least this many elements outside the units within
  /// it. All other parameters belong to the root unit.
  int64_t min_elements = 100'000;
  bool reshard_after_forward = true;  ///< else a unit stays gathered from its forward to its backward
  /// While a unit computes, the unit that followed it in the previous pass is gathered: two units are then gathered at
  /// a time, beside those that enclose them. The last unit of a forward stays gathered if backward begins with it.
  /// Ignored with find_unused_parameters, as ranks may then need different units.
  bool prefetch = true;
  /// As in ZeroOptions.
  bool find_unused_parameters = false;
};

/// Each rank keeps an equal part of every unit's parameters. A unit is gathered during its module's forward, and in
/// backward until its gradients are computed, which are then reduced and scattered to the ranks that own them.
///
///   FullyShardedDataParallel fsdp(net, group);
///   optim::AdamW adam(fsdp.parameters());  // this rank's pieces
///   cross_entropy(fsdp(x), y).backward();
///   fsdp.clip_grad_norm_(1.0);
///   adam.step();
///
/// All ranks run the same modules in the same order. A module with parameters of its own must be called by operator(),
/// which runs the hooks. Outside of a forward the module's own parameters have their shapes, and NaN as values:
/// state_dict() and unshard() give the true ones. Optimizers must be elementwise; take() checks.
class FullyShardedDataParallel {
 public:
  /// Broadcasts the module's state by share_module, and throws what that throws.
  FullyShardedDataParallel(nn::Module& module, std::shared_ptr<ProcessGroup> group,
                           const FullyShardedOptions& options = {});
  ~FullyShardedDataParallel();
  FullyShardedDataParallel(const FullyShardedDataParallel&) = delete;
  FullyShardedDataParallel& operator=(const FullyShardedDataParallel&) = delete;

  /// Calls the module.
  Tensor operator()(const Tensor& x) { return module()(x); }
  /// The wrapped module.
  nn::Module& module() const;
  /// This rank's pieces, named as the parameters; some may be empty.
  std::vector<Parameter> parameters() const;
  /// Makes an optimizer that was constructed with the module's parameters step this rank's pieces. Throws ValueError
  /// for one that is not elementwise.
  void take(optim::Optimizer& optimizer) const;
  /// Returns the module's parameters that the pieces belong to.
  std::vector<Parameter> full_parameters(std::vector<Parameter> pieces) const;
  /// True for a parameter that is one of this rank's pieces.
  bool has(const Parameter& piece) const;

  /// While off, backward only accumulates this rank's full gradients; the next exchange reduces the sum.
  void set_sync(bool on);
  /// Reduces the gradients that were accumulated for the units of these pieces. Must be called on all ranks.
  void reduce(const std::vector<Parameter>& pieces);
  /// Removes the gradients of the pieces, and those that were accumulated for the units.
  void zero_grad();
  /// As optim::clip_grad_norm_, by the norm of the full gradient. Must be called on all ranks.
  Tensor clip_grad_norm_(double max_norm, double norm_type = 2.0);

  /// The full state dict of the module on rank 0, empty on other ranks. Must be called on all ranks.
  StateDict state_dict() const;
  /// Keeps this rank's part, converted from other floating dtypes; an undefined tensor changes nothing. Throws
  /// StateError, without having changed anything, for missing, unexpected or mismatched tensors.
  void load_state_dict(const StateDict& whole);
  /// As above for an optimizer that steps pieces; its state is that of an optimizer that steps the parameters.
  StateDict optimizer_state(const optim::Optimizer& optimizer) const;
  void load_optimizer_state(optim::Optimizer& optimizer, const StateDict& whole) const;
  /// This rank's shards of state_dict() and of optimizer_state(), which share memory; what is not sharded is rank 0's.
  /// Does not communicate.
  std::vector<Shard> shards() const;
  std::vector<Shard> optimizer_shards(const optim::Optimizer& optimizer) const;

  /// Restores the module, with full parameters and without hooks; this object is unusable afterwards. Must be called on
  /// all ranks.
  void unshard();

  /// Names of the modules that are units, in the order of their exchanges; "" is the root module.
  std::vector<std::string> units() const;
  /// `parameters` counts this rank's part and what is gathered at the moment.
  HeldBytes held_bytes(const optim::Optimizer& optimizer) const;
  /// The maximum number of bytes gathered at a time, beside this rank's part.
  int64_t peak_gathered_bytes() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Clips the gradients of pieces by their norm over all ranks, as optim::clip_grad_norm_ does, and returns the norm
/// before. Must be called on all ranks.
Tensor clip_grad_norm_of_pieces_(const std::vector<Parameter>& pieces, double max_norm, ProcessGroup& group,
                                 double norm_type = 2.0);

}  // namespace levin::distributed
