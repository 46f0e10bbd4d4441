#pragma once
// Full state dicts, as stored in checkpoints: weights come from the precision and optimizer state from the optimizers,
// or both from the strategy that shards them.

#include <levin/trainer/optimizers.h>
#include <levin/trainer/precision.h>
#include <levin/trainer/strategies/divergent_weights.h>
#include <levin/trainer/strategies/sharded_optimizer.h>
#include <levin/trainer/strategies/sharded_weights.h>
#include <levin/trainer/strategy.h>

namespace levin {

/// With sharded weights it is complete on rank zero only, and the call is collective.
inline StateDict full_state_dict(Strategy& strategy, const PrecisionPlugin& precision, const nn::Module& module) {
  const auto* sharded = strategy.sharded_weights();
  return sharded ? sharded->full_state_dict(module) : precision.weights(module);
}

/// Returns the names whose floating dtype differs from that in which a checkpoint of this run stores them.
inline std::vector<std::string> load_full_state_dict(Strategy& strategy, PrecisionPlugin& precision, nn::Module& module,
                                                     const StateDict& full) {
  auto* const sharded = strategy.sharded_weights();
  std::vector<std::string> converted;
  for (const auto& [name, mine] : sharded ? module.state_dict() : precision.weights(module)) {
    const Tensor* theirs = full.find(name);
    if (!theirs || !theirs->defined() || theirs->dtype() == mine.dtype()) continue;
    if (theirs->is_floating() && mine.is_floating()) converted.push_back(name);
  }
  sharded ? sharded->load_full_state_dict(module, full) : precision.load_weights(module, full);
  return converted;
}

/// For loading that is not strict: returns `stored` for names that the module has, and the module's values for the
/// others. Reports missing and unexpected names.
inline StateDict fitting_weights(Strategy& strategy, const PrecisionPlugin& precision, const nn::Module& module,
                                 const StateDict& stored, nn::LoadReport& report) {
  const StateDict given = nn::with_shared_parameters(module, stored);
  StateDict fitting;
  const bool sharded = strategy.sharded_weights() != nullptr;
  for (const auto& [name, mine] : sharded ? module.state_dict() : precision.weights(module)) {
    const Tensor* theirs = given.find(name);
    if (!theirs) report.missing.push_back(name);
    fitting.set(name, theirs ? *theirs : sharded ? Tensor() : mine);
  }
  for (const auto& [name, theirs] : given)
    if (!fitting.contains(name)) report.unexpected.push_back(name);
  return fitting;
}

/// With sharded state it is complete on rank zero only, and the call is collective.
inline StateDict full_optimizer_state(Strategy& strategy, const Optimizers& optimizers) {
  const auto* sharded = strategy.sharded_optimizer();
  return sharded ? sharded->full_optimizer_state(optimizers) : optimizers.optimizer_state();
}

inline void load_full_optimizer_state(Strategy& strategy, Optimizers& optimizers, const StateDict& full) {
  auto* const sharded = strategy.sharded_optimizer();
  sharded ? sharded->load_full_optimizer_state(optimizers, full) : optimizers.load_optimizer_state(full);
}

/// Returns the average over the ranks if their weights differ, else `own`. Collective.
inline StateDict consensus(Strategy& strategy, const StateDict& own) {
  const auto* divergent = strategy.divergent_weights();
  return divergent ? divergent->consensus(own) : own;
}

}  // namespace levin
