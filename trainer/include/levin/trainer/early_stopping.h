#pragma once
// Ends training when a watched value no longer improves (Prechelt 1998, "Early stopping - but when?").

#include <levin/trainer/callback.h>

namespace levin {

/// Whether smaller or larger values of a metric are better.
enum class Mode { min, max };

struct EarlyStoppingOptions {
  std::string monitor{};
  double min_delta = 0.0;     ///< smaller changes are no improvement
  std::int64_t patience = 3;  ///< checks without improvement before the stop
  Mode mode = Mode::min;
  bool strict = true;         ///< a monitor that was never logged is an error
  bool check_finite = true;   ///< stop on NaN or infinity
  std::optional<double> stopping_threshold{};    ///< stop once better than this
  std::optional<double> divergence_threshold{};  ///< stop once worse than this
  std::optional<bool> check_on_train_epoch_end{};  ///< else after validation; by default wherever the monitor comes up
};

class EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options);

  enum class Reason { none, non_finite, stopping_threshold, divergence_threshold, patience };
  Reason reason() const { return reason_; }
  std::int64_t wait_count() const { return wait_; }
  std::int64_t stopped_epoch() const { return stopped_epoch_; }
  double best_score() const { return best_; }

  std::string state_key() const override { return "EarlyStopping/" + options_.monitor; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  bool is_monitoring() const override { return true; }
  void on_validation_end(RunContext& run) override;
  void on_train_epoch_end(RunContext& run) override;

 private:
  void check(RunContext& run);
  Reason judge(double value);
  bool better(double a, double b) const { return options_.mode == Mode::min ? a < b : a > b; }

  EarlyStoppingOptions options_;
  double best_;
  std::int64_t wait_ = 0;
  std::int64_t stopped_epoch_ = 0;
  Reason reason_ = Reason::none;
};

/// The sentence for a monitor that was never logged: it lists what was.
std::string unknown_monitor(const std::string& who, const std::string& monitor, const MetricStore& metrics);

}  // namespace levin
