#pragma once
// A module's full state dict, as stored in checkpoints: from the precision or, if ranks shard the weights, from the
// strategy.

#include <levin/trainer/precision.h>
#include <levin/trainer/strategy.h>

namespace levin {

/// With sharded weights it is complete on rank zero only, and the call is collective.
inline StateDict full_state_dict(const Strategy& strategy, const PrecisionPlugin& precision, const nn::Module& module) {
  return strategy.divides_weights() ? strategy.weights(module) : precision.weights(module);
}

inline void load_full_state_dict(Strategy& strategy, PrecisionPlugin& precision, nn::Module& module,
                                 const StateDict& whole) {
  strategy.divides_weights() ? strategy.load_weights(module, whole) : precision.load_weights(module, whole);
}

/// For loading that is not strict: returns `given` for names that the module has, and the module's values for the
/// others. Reports missing and unexpected names.
inline StateDict fitting_weights(const Strategy& strategy, const PrecisionPlugin& precision, const nn::Module& module,
                                 const StateDict& given, nn::LoadReport& report) {
  StateDict fitting;
  const bool divided = strategy.divides_weights();
  for (const auto& [name, mine] : divided ? module.state_dict() : precision.weights(module)) {
    const Tensor* theirs = given.find(name);
    if (!theirs) report.missing.push_back(name);
    fitting.set(name, theirs ? *theirs : divided ? Tensor() : mine);
  }
  for (const auto& [name, theirs] : given)
    if (!fitting.contains(name)) report.unexpected.push_back(name);
  return fitting;
}

}  // namespace levin
