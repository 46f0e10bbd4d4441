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

}  // namespace levin
