#pragma once
// Evaluates the average of the ranks' weights during a fit in which they differ.

#include "src/loops/run.h"

namespace levin {

/// While alive, the module holds the average of all ranks' weights and buffers; the destructor restores its own
/// exactly. Has no effect if the weights do not differ. Collective.
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
