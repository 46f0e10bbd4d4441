#pragma once
// One pass over data without gradients.

#include "run.h"

namespace levin {

class EvalLoop {
 public:
  EvalLoop(Run& run, Stage stage) : run_(run), stage_(stage) {}

  /// Walks over the loaders one after the other; predictions are appended where given. Every submodule keeps its mode.
  /// False when a signal ended the pass early.
  bool run(const EvalPlan& plan, std::vector<Tensor>* predictions = nullptr);

 private:
  bool run_batches(data::DataLoader& loader, int which, std::int64_t batches, std::vector<Tensor>* predictions);
  void step(const Batch& batch, int index, std::vector<Tensor>* predictions);

  Run& run_;
  Stage stage_;
  bool several_ = false;  // loaders: their values are told apart
};

}  // namespace levin
