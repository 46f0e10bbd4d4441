#pragma once
// Which checkpoints a run shall make and keep, said in four verbs.

#include <levin/trainer/callbacks/early_stopping.h>

namespace levin {

/// A moment of training; at most one of steps, epochs and time.
struct When {
  std::int64_t steps = 0;   ///< every so many finished accumulation windows (global_step)
  std::int64_t epochs = 0;  ///< every so many epochs; with all three absent, every epoch
  std::optional<Duration> time{};  ///< after the batch with which so much has passed
  /// Where epochs count: at their end (true), or after validations (false). Unset it is Lightning's choice: after
  /// validations where val_check_interval or check_val_every_n_epoch put them elsewhere than behind every epoch.
  std::optional<bool> on_train_epoch_end{};
};

/// Rules that hold side by side: a checkpoint is written once, and stays as long as one of them needs it.
///
///     CheckpointPlan().every({.steps = 1000}).best(3, "val_acc", Mode::max).last().on_exception()
struct CheckpointPlan {
  /// Saves then, and keeps all of them.
  CheckpointPlan&& every(const When& when) &&;
  /// Saves where `metric` is among its k best so far (-1: always), and keeps those. Without a metric: the k newest.
  CheckpointPlan&& best(std::int64_t k, const std::string& metric, Mode mode = Mode::min, const When& when = {}) &&;
  /// Saves then, and keeps the newest of all checkpoints under the pointer `last`.
  CheckpointPlan&& last(const When& when = {}) &&;
  /// Saves where an exception ends the run, for `last`.
  CheckpointPlan&& on_exception() &&;

  /// What will be saved when, and what is kept, in plain sentences; one a line.
  std::string explain() const;

  struct Rule {
    When when;
    std::int64_t k = 1;      // -1 for all
    std::string monitor{};   // empty: the newest is the best
    Mode mode = Mode::min;
  };
  std::vector<Rule> rules{};
  std::optional<When> last_when{};
  bool saves_on_exception = false;
};

}  // namespace levin
