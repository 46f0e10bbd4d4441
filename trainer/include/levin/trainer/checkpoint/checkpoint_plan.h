#pragma once
// Describes which checkpoints a run saves and keeps.

#include <levin/trainer/callbacks/early_stopping.h>

namespace levin {

/// When a rule saves; at most one of steps, epochs and time.
struct When {
  std::int64_t steps = 0;          ///< every this many completed accumulation windows (global_step)
  std::int64_t epochs = 0;         ///< every this many epochs; every epoch if all three are absent
  std::optional<Duration> time{};  ///< after the batch in which this much time has passed
  /// For epochs: save at their end (true) or after validation (false). If unset, as in Lightning: after validation if
  /// val_check_interval or check_val_every_n_epoch move validations away from the end of every epoch.
  std::optional<bool> on_train_epoch_end{};
};

/// Independent rules: a checkpoint is written once and kept as long as at least one rule needs it. The functions that
/// add rules throw UsageError for values out of range.
///
///     CheckpointPlan().every({.steps = 1000}).best(3, "val_acc", Mode::max).last().on_exception()
struct CheckpointPlan {
  /// Saves at `when` and keeps all checkpoints.
  CheckpointPlan&& every(const When& when) &&;
  /// Saves if `metric` is among its k best values so far (-1: always) and keeps those k. Without a metric, keeps the k
  /// newest.
  CheckpointPlan&& best(std::int64_t k, const std::string& metric, Mode mode = Mode::min, const When& when = {}) &&;
  /// Saves at `when` and keeps the newest of all checkpoints under the pointer `last`.
  CheckpointPlan&& last(const When& when = {}) &&;
  /// Saves when an exception ends the run; `last` then points to that checkpoint.
  CheckpointPlan&& on_exception() &&;

  /// Describes when checkpoints are saved and which are kept, one sentence per line.
  std::string explain() const;

  /// One rule, as best() and every() add it.
  struct Rule {
    When when;              ///< when it saves
    std::int64_t k = 1;     ///< number of checkpoints that it keeps; -1 for all
    std::string monitor{};  ///< logged value by which it compares; if empty, the newest is the best
    Mode mode = Mode::min;  ///< whether smaller or larger values are better
  };
  std::vector<Rule> rules{};        ///< in the order in which they were added
  std::optional<When> last_when{};  ///< set by last()
  bool saves_on_exception = false;  ///< set by on_exception()
};

}  // namespace levin
