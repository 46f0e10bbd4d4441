#include "src/loops/average_in_place.h"

#include <levin/autograd/modes.h>
#include <levin/trainer/strategies/divergent_weights.h>

namespace levin {

AverageInPlace::AverageInPlace(Run& run) : run_(run) {
  DivergentWeights* const divergent = run.strategy->divergent_weights();
  if (!divergent) return;
  const no_grad guard;
  const StateDict now = run.precision->weights(run.module);
  const StateDict average = divergent->consensus(now);
  for (const auto& [name, t] : now) own_.set(name, t.detach().clone());
  run.own_weights = &own_;
  run.precision->load_weights(run.module, average);
}

AverageInPlace::~AverageInPlace() {
  if (run_.own_weights != &own_) return;
  const no_grad guard;
  run_.own_weights = nullptr;
  run_.precision->load_weights(run_.module, own_);
}

}  // namespace levin
