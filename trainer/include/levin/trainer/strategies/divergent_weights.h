#pragma once
// Capability of strategies whose ranks have weights and optimizers of their own (local SGD, some of Bagua's
// algorithms).

#include <levin/core/state_dict.h>

namespace levin {

/// During training the ranks' weights differ. A checkpoint stores those of each rank, and their average as the model's;
/// an evaluation uses the average.
class DivergentWeights {
 public:
  virtual ~DivergentWeights() = default;
  /// Returns the average of the ranks' tensors under these names, bitwise equal on all ranks. Collective.
  virtual StateDict consensus(const StateDict& own) const = 0;
};

}  // namespace levin
