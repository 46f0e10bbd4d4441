#pragma once
// Where ranks have replicas of their own, an evaluation in a fit is of their average.

#include "run.h"

namespace levin {

/// While it lives the module has the average of all ranks' weights and buffers, then its own again, to the bit. Nothing
/// happens where replicas do not differ. All ranks make it.
class AverageInPlace {
 public:
  explicit AverageInPlace(Run& run);
  ~AverageInPlace();
  AverageInPlace(const AverageInPlace&) = delete;
  AverageInPlace& operator=(const AverageInPlace&) = delete;

 private:
  Run& run_;
  StateDict own_;
};

}  // namespace levin
