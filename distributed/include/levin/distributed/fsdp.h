#pragma once
// Parameters, gradients and optimizer state divided among the ranks: stage 3 of ZeRO.
// Y. Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel" (VLDB 2023).

#include <levin/distributed/zero.h>
#include <levin/nn/module.h>

namespace levin::distributed {

struct FullyShardedOptions {
  /// A module becomes a unit, which is gathered as one, where what it has beside the units within is at least so many
  /// elements. The rest belongs to the whole module.
  int64_t min_elements = 100'000;
  bool reshard_after_forward = true;  ///< else a unit stays whole from its forward to its backward
  /// While a unit computes, the one that came after it in the pass before is gathered: with it two are whole at a time,
  /// beside those that enclose them. The last of a forward stays whole where backward begins with it. Not done with
  /// find_unused_parameters, as ranks then need different ones.
  bool prefetch = true;
  /// As ZeroOptions'.
  bool find_unused_parameters = false;
};

/// Each rank keeps an equal part of every unit's parameters. A unit is whole from its module's forward to the end of
/// that, and in backward until its gradients are there, which go to the ranks that own them.
///
///   FullyShardedDataParallel fsdp(net, group);
///   optim::AdamW adam(fsdp.parameters());  // this rank's pieces
///   cross_entropy(fsdp(x), y).backward();
///   fsdp.clip_grad_norm_(1.0);
///   adam.step();
///
/// All ranks run the same modules in the same order. A module with parameters of its own is called by operator(), which
/// has the hooks. Outside of a forward the module's own parameters have their shapes, and NaN as values: state_dict()
/// and unshard() give the true ones. Optimizers must be elementwise: take() looks.
class FullyShardedDataParallel {
 public:
  /// Shares the module as share_module does, and throws as it does.
  FullyShardedDataParallel(nn::Module& module, std::shared_ptr<ProcessGroup> group,
                           const FullyShardedOptions& options = {});
  ~FullyShardedDataParallel();
  FullyShardedDataParallel(const FullyShardedDataParallel&) = delete;
  FullyShardedDataParallel& operator=(const FullyShardedDataParallel&) = delete;

  Tensor operator()(const Tensor& x) { return module()(x); }
  nn::Module& module() const;
  /// This rank's pieces, by the names of the parameters; some may be empty.
  std::vector<Parameter> parameters() const;
  /// An optimizer that was made with the module's parameters steps pieces from here on. Throws ValueError for one that
  /// is not elementwise.
  void take(optim::Optimizer& optimizer) const;
  /// The module's parameters in place of pieces of them.
  std::vector<Parameter> whole_of(std::vector<Parameter> pieces) const;
  bool has(const Parameter& piece) const;

  /// While off, backward only adds up this rank's gradients, which are whole; the next exchange carries the sum.
  void set_sync(bool on);
  /// Exchanges what backwards have added up meanwhile for the units of these pieces. All ranks call.
  void reduce(const std::vector<Parameter>& pieces);
  void zero_grad();
  /// As optim::clip_grad_norm_, by the norm of the whole gradient.
  Tensor clip_grad_norm_(double max_norm, double norm_type = 2.0);

  /// What the module has by itself, whole on rank 0 and empty elsewhere. All ranks call.
  StateDict state_dict() const;
  /// Keeps this rank's part; an undefined tensor changes nothing. Throws StateError, and has changed nothing, for
  /// missing, unexpected or other tensors.
  void load_state_dict(const StateDict& whole);
  /// The same for an optimizer that steps pieces; its state is that of one that steps the parameters.
  StateDict optimizer_state(const optim::Optimizer& optimizer) const;
  void load_optimizer_state(optim::Optimizer& optimizer, const StateDict& whole) const;
  /// What this rank has of state_dict(), and of optimizer_state(), as handles; what is not divided is rank 0's. Asks no
  /// other rank.
  std::vector<Shard> shards() const;
  std::vector<Shard> optimizer_shards(const optim::Optimizer& optimizer) const;

  /// The module is what it was, with whole parameters and without hooks; this object ends with it. All ranks call.
  void unshard();

  /// Names of the modules that are units, in the order of their exchanges; "" is the whole module.
  std::vector<std::string> units() const;
  /// `parameters` counts this rank's part and what is whole at the moment.
  HeldBytes held_bytes(const optim::Optimizer& optimizer) const;
  /// The most bytes that were whole at a time, beside this rank's part.
  int64_t peak_gathered_bytes() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Clips the gradients of pieces by the norm of all ranks' together, as optim::clip_grad_norm_ does; gives the norm
/// before. All ranks call.
Tensor clip_grad_norm_of_pieces_(const std::vector<Parameter>& pieces, double max_norm, ProcessGroup& group,
                                 double norm_type = 2.0);

}  // namespace levin::distributed
