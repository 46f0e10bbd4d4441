#pragma once
// One evaluation pass without gradients.

#include "src/loops/run.h"

#include <functional>

namespace levin {

class EvalLoop {
 public:
  EvalLoop(Run& run, Stage stage) : run_(run), stage_(stage) {}

  /// Iterates over the loaders one after the other and appends predictions if requested. Every submodule keeps its
  /// mode. Returns false if a signal ended the pass early.
  bool run(const EvalPlan& plan, Predictions* predictions = nullptr);
  /// Runs a fit's validation: calls `after_batch` after each batch, once the state counts it. With `resumed`, skips the
  /// batches that the state already counts.
  void validate(const EvalPlan& plan, std::function<void()> after_batch, bool resumed);

 private:
  bool run_batches(data::DataLoader& loader, int which, std::int64_t batches, std::vector<Tensor>* predictions);
  void run_batch(const Batch& given, int index, int which, std::vector<Tensor>* predictions);
  void step(const Batch& batch, int index, std::vector<Tensor>* predictions);
  std::int64_t batches_done(const EvalPlan& plan) const;

  Run& run_;
  Stage stage_;
  bool several_ = false;  // several loaders: their values are distinguished
  std::function<void()> after_batch_;
  std::int64_t first_ = 0;  // finished batches of the first loader, if the run was resumed
  bool resumed_ = false;
};

}  // namespace levin
