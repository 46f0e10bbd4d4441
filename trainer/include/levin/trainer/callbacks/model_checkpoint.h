#pragma once
// Saves checkpoints as a plan says, and removes those that it no longer needs.

#include <levin/trainer/checkpoint_plan.h>

#include <chrono>

namespace levin {

struct ModelCheckpointOptions {
  std::filesystem::path dirpath{};          ///< <default_root_dir>/checkpoints when empty
  std::string filename = "{epoch}-{step}";  ///< "{epoch:02d}-{val_loss:.2f}"; a metric that is not known counts as 0
  std::string monitor{};                    ///< empty: the newest count as the best
  Mode mode = Mode::min;                    ///< NaN is the worst either way
  std::int64_t save_top_k = 1;              ///< -1 for all, 0 for none; more than 1 needs a monitor
  bool save_last = true;                    ///< keeps the newest too, and the pointer `last` to it
  bool save_weights_only = false;           ///< training cannot go on from such a checkpoint
  bool save_on_exception = false;           ///< also when an exception ends the run
  bool auto_insert_metric_name = true;      ///< "val_loss=0.32" instead of "0.32"
  bool enable_version_counter = true;       ///< "-v1" behind a name that is taken; else what has the name is replaced
  std::int64_t every_n_epochs = 0;          ///< at most one of these three; without any, every epoch
  std::int64_t every_n_train_steps = 0;     ///< counted in global_step
  std::optional<Duration> train_time_interval{};
  std::optional<bool> save_on_train_epoch_end{};  ///< unset: see When
  bool continue_on_error = false;           ///< a checkpoint that cannot be written is a warning, and training goes on
  bool verbose = false;                     ///< says the plan at the start, and each checkpoint
};

/// Two pointers stand beside the checkpoints: `best` and `last`. A checkpoint that nothing needs any more is removed
/// after the new one is safe. A global_step is written once, however many rules want it. A step or time at which the
/// monitored value is not known yet saves after the next validation instead.
class ModelCheckpoint : public CheckpointPolicy {
 public:
  explicit ModelCheckpoint(const ModelCheckpointOptions& options = {});
  /// Rules of one's own. Of `options` all but what says when and which: those throw UsageError.
  explicit ModelCheckpoint(CheckpointPlan plan, const ModelCheckpointOptions& options = {});

  /// Of the first rule; empty before the first save.
  std::filesystem::path best_model_path() const { return find("best"); }
  std::filesystem::path last_model_path() const { return find("last"); }
  std::optional<double> best_model_score() const;
  std::optional<double> current_score() const { return current_score_; }
  /// The kept ones of the first rule, the best first.
  std::vector<std::pair<std::filesystem::path, double>> best_k_models() const;
  /// The next to go, once there are k; else empty.
  std::filesystem::path kth_best_model_path() const;
  std::optional<double> kth_value() const;

  /// What will be saved when, and what is kept, in plain sentences.
  std::string explain() const;

  std::string state_key() const override;
  std::string monitor() const override;
  StateMap state() const override;
  /// Of a state from another folder only the best path is taken: nothing there may be removed.
  void load_state(const StateMap& state) override;
  void setup(RunContext& run) override;
  void on_fit_start(RunContext& run) override;
  bool due(const RunContext& run, SavePoint point) override;
  std::vector<CheckpointAction> decide(RunContext& run, SavePoint point) override;
  std::vector<CheckpointAction> decide_interrupted(RunContext& run) override;
  std::vector<CheckpointAction> decide_exception(RunContext& run) override;
  bool continues_on_error() const override { return options_.continue_on_error; }
  std::filesystem::path find(const std::string& which) const override;
  std::filesystem::path directory() const override { return dir_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    std::string name;
    double score = 0;
  };
  struct Rule {
    CheckpointPlan::Rule says;
    std::vector<Kept> kept{};  // the best first
    bool deferred = false;     // until its monitor is known
    Clock::time_point timer{};
    bool wants(double score) const;
  };

  static bool is_due(const When& when, Clock::time_point timer, const RunContext& run, SavePoint point);
  std::optional<double> score(Rule& rule, const RunContext& run, SavePoint point);
  std::vector<CheckpointAction> save(RunContext& run, const std::vector<std::pair<Rule*, double>>& into, bool as_last);
  std::vector<CheckpointAction> save_at_end(RunContext& run, const std::string& prefix);
  std::vector<CheckpointAction> actions_for(const std::string& saved, const std::vector<std::string>& before) const;
  std::vector<std::string> names() const;
  bool keeps(const std::string& name) const;
  std::string free_name(const RunContext& run, const std::string& prefix, const std::vector<std::string>& before) const;

  CheckpointPlan plan_;
  ModelCheckpointOptions options_;
  std::filesystem::path dir_, best_elsewhere_;
  std::vector<Rule> rules_;
  std::string last_;  // what the pointer `last` names
  std::optional<double> current_score_;
  std::int64_t last_step_ = -1;
  std::string last_saved_;
  bool validated_ = false;
  Clock::time_point last_timer_{};
};

}  // namespace levin
