#pragma once
// Stops training when a monitored value no longer improves (Prechelt 1998, "Early stopping - but when?").

#include <levin/trainer/callback.h>

namespace levin {

/// Whether smaller or larger values of a metric are better.
enum class Mode { min, max };

/// Options of EarlyStopping, with Lightning's defaults.
struct EarlyStoppingOptions {
  std::string monitor{};                         ///< name of the logged value to watch; required
  double min_delta = 0.0;                        ///< smaller changes do not count as an improvement
  std::int64_t patience = 3;                     ///< number of checks without improvement before training stops
  Mode mode = Mode::min;                         ///< whether smaller or larger values are better
  bool strict = true;                            ///< throw if the monitor was never logged
  bool check_finite = true;                      ///< stop on NaN or infinity
  std::optional<double> stopping_threshold{};    ///< stop once better than this
  std::optional<double> divergence_threshold{};  ///< stop once worse than this
  /// If true, checks at the end of training epochs, else after validation. By default true if every epoch has one
  /// validation or none.
  std::optional<bool> check_on_train_epoch_end{};
  bool verbose = false;             ///< log each improvement and the reason for stopping
  bool log_rank_zero_only = false;  ///< log on rank zero only
};

/// Stops training when a monitored value no longer improves. Each check compares the value with the best one so far.
/// With `strict` a fit throws UsageError if the value was never logged. Has no effect in a fast_dev_run.
class EarlyStopping : public Callback {
 public:
  /// Throws UsageError without a monitor and for a negative patience.
  explicit EarlyStopping(EarlyStoppingOptions options);

  /// Why training stopped.
  enum class Reason { not_stopped, threshold, divergence, patience, non_finite };
  /// Returns not_stopped while training runs.
  Reason reason() const { return reason_; }
  /// Explains why training stopped; empty while it runs.
  const std::string& reason_message() const { return reason_message_; }
  /// The number of checks without improvement that end training, and how many there have been in a row.
  std::int64_t patience() const { return options_.patience; }
  std::int64_t wait_count() const { return wait_; }
  /// The epoch, from 0, in which training stopped; 0 if it did not.
  std::int64_t stopped_epoch() const { return stopped_epoch_; }
  /// The best value so far; the worst possible infinity before the first check.
  double best_score() const { return best_; }

  std::string state_key() const override;
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  bool is_monitoring() const override { return true; }
  std::string monitor() const override;
  void on_validation_end(RunContext& run) override;
  void on_train_epoch_end(RunContext& run) override;

 private:
  bool checks_on_train_epoch_end(const RunContext& run) const;
  void check(RunContext& run);
  Reason judge(double value);
  std::string explain(Reason reason, double value) const;
  void say(const RunContext& run, const std::string& text) const;
  bool better(double a, double b) const { return options_.mode == Mode::min ? a < b : a > b; }

  EarlyStoppingOptions options_;
  double best_;
  std::int64_t wait_ = 0;
  std::int64_t stopped_epoch_ = 0;
  Reason reason_ = Reason::not_stopped;
  std::string reason_message_;
};

}  // namespace levin
