#pragma once
// More batches to an optimizer step as training goes on.

#include <levin/trainer/callback.h>

#include <map>

namespace levin {

/// `GradientAccumulationScheduler({{0, 1}, {4, 8}})`: one batch a step, and eight from epoch 4 on (epochs count from
/// 0). Before the first epoch named, TrainerConfig::accumulate_grad_batches holds; it must be 1 here.
class GradientAccumulationScheduler : public Callback {
 public:
  /// Throws UsageError for no entry, an epoch below 0 or a number below 1.
  explicit GradientAccumulationScheduler(std::map<std::int64_t, std::int64_t> scheduling);
  std::int64_t accumulate_at(std::int64_t epoch) const;
  const std::map<std::int64_t, std::int64_t>& scheduling() const { return scheduling_; }

  void setup(RunContext& run) override;
  void on_fit_start(RunContext& run) override;
  void on_train_epoch_start(RunContext& run) override;

 private:
  std::map<std::int64_t, std::int64_t> scheduling_;
};

}  // namespace levin
