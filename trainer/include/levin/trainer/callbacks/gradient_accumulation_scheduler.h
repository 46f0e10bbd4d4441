#pragma once
// Changes accumulate_grad_batches as training proceeds.

#include <levin/trainer/callback.h>

#include <map>

namespace levin {

/// `GradientAccumulationScheduler({{0, 1}, {4, 8}})` accumulates one batch per step, and eight from epoch 4 on (epochs
/// count from 0). TrainerConfig::accumulate_grad_batches must be 1; it applies before the first epoch listed.
class GradientAccumulationScheduler : public Callback {
 public:
  /// Throws UsageError if `scheduling` is empty, an epoch is below 0 or a number is below 1.
  explicit GradientAccumulationScheduler(std::map<std::int64_t, std::int64_t> scheduling);
  /// Returns the number of batches per step in an epoch; 1 before the first epoch listed.
  std::int64_t accumulate_at(std::int64_t epoch) const;
  /// Batches per step, by the epoch from which on they apply.
  const std::map<std::int64_t, std::int64_t>& scheduling() const { return scheduling_; }

  void setup(RunContext& run) override;
  void on_fit_start(RunContext& run) override;
  void on_train_epoch_start(RunContext& run) override;

 private:
  std::map<std::int64_t, std::int64_t> scheduling_;
};

}  // namespace levin
