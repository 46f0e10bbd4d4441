#pragma once
// One pass over data without gradients.

#include "run.h"

#include <functional>

namespace levin {

class EvalLoop {
 public:
  EvalLoop(Run& run, Stage stage) : run_(run), stage_(stage) {}

  /// Walks over the loaders one after the other; predictions are appended where given. Every submodule keeps its mode.
  /// False when a signal ended the pass early.
  bool run(const EvalPlan& plan, std::vector<Tensor>* predictions = nullptr);
  /// Of a fit: `after_batch` is called after each batch, when the state says how many are finished. `resumed` goes on
  /// behind those that it says already.
  void validate(const EvalPlan& plan, std::function<void()> after_batch, bool resumed);

 private:
  bool run_batches(data::DataLoader& loader, int which, std::int64_t batches, std::vector<Tensor>* predictions);
  void run_batch(const Batch& given, int index, int which, std::vector<Tensor>* predictions);
  void step(const Batch& batch, int index, std::vector<Tensor>* predictions);

  Run& run_;
  Stage stage_;
  bool several_ = false;  // loaders: their values are told apart
  std::function<void()> after_batch_;
  std::int64_t first_ = 0;  // batches of the first loader that is walked, finished before the run was resumed
  bool resumed_ = false;
};

}  // namespace levin
