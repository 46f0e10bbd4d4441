#pragma once
// The toy network with values scripted by a test.
#include "trainer/toy.h"

namespace levin::test {

/// Gives its values one after the other, and the last one from then on.
struct Scripted : ToyModule {
  explicit Scripted(std::vector<double> v) : values(std::move(v)) {}
  std::vector<double> values;
  std::size_t at = 0;
  double next() { return values[std::min(at++, values.size() - 1)]; }
};

/// Logs them as "score", one each batch of validation.
struct ScoreScript : Scripted {
  using Scripted::Scripted;
  void validation_step(const Batch&, int) override { log("score", next()); }
};

/// Has them as its losses, batch by batch.
struct LossScript : Scripted {
  using Scripted::Scripted;
  StepOutput training_step(const Batch& b, int) override { return (*this)(b[0]).sum() * 0.0 + next(); }
};

}  // namespace levin::test
