#pragma once
// One pass over data without gradients.

#include "run.h"

namespace levin {

class EvalLoop {
 public:
  EvalLoop(Run& run, Stage stage) : run_(run), stage_(stage) {}

  /// Walks over `batches` batches; predictions are appended where given. Every submodule keeps its mode. False when a
  /// signal ended the pass early.
  bool run(data::DataLoader& loader, std::int64_t batches, std::vector<Tensor>* predictions = nullptr);

 private:
  bool run_batches(data::DataLoader& loader, std::int64_t batches, std::vector<Tensor>* predictions);
  void step(const Batch& batch, int index, std::vector<Tensor>* predictions);

  Run& run_;
  Stage stage_;
};

}  // namespace levin
