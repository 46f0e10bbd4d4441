#pragma once
// A module's weights as a checkpoint has them: the precision's, or, where ranks have parts of them, the strategy's.

#include <levin/trainer/precision.h>
#include <levin/trainer/strategy.h>

namespace levin {

/// Where ranks have parts, whole on rank zero, and all ranks call.
inline StateDict whole_weights(const Strategy& strategy, const Precision& precision, const nn::Module& module) {
  return strategy.divides_weights() ? strategy.weights(module) : precision.weights(module);
}

inline void load_whole_weights(Strategy& strategy, Precision& precision, nn::Module& module, const StateDict& whole) {
  strategy.divides_weights() ? strategy.load_weights(module, whole) : precision.load_weights(module, whole);
}

/// For loading that is not strict: `given` where the module has a place for it, and what the module has elsewhere. Both
/// kinds of names that do not fit go into the report.
inline StateDict fitting_weights(const Strategy& strategy, const Precision& precision, const nn::Module& module,
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
