#pragma once
// Saves checkpoints according to a plan and removes those that it no longer needs.

#include <levin/trainer/checkpoint/checkpoint_plan.h>

namespace levin {

/// Options of ModelCheckpoint, with Lightning's names.
struct ModelCheckpointOptions {
  std::string dirpath{};                          ///< <default_root_dir>/checkpoints when empty
  std::string filename = "{epoch}-{step}";        ///< e.g. "{epoch:02d}-{val_loss:.2f}"; an unknown metric counts as 0
  std::string monitor{};                          ///< if empty, the newest checkpoints count as the best
  Mode mode = Mode::min;                          ///< NaN is the worst value in either mode
  std::int64_t save_top_k = 1;                    ///< -1 for all, 0 for none; more than 1 needs a monitor
  bool save_last = true;                          ///< also keep the newest checkpoint and a pointer `last` to it
  bool save_weights_only = false;                 ///< training cannot resume from such a checkpoint
  bool save_on_exception = false;                 ///< also save when an exception ends the run
  bool auto_insert_metric_name = true;            ///< "val_loss=0.32" instead of "0.32"
  bool enable_version_counter = true;             ///< append "-v1" to a taken name; if false, replace that checkpoint
  std::int64_t every_n_epochs = 0;                ///< at most one of these three; every epoch if none is given
  std::int64_t every_n_train_steps = 0;           ///< counts global_step
  std::optional<Duration> train_time_interval{};  ///< saves after the batch in which this much time has passed
  std::optional<bool> save_on_train_epoch_end{};  ///< if unset: see When
  bool continue_on_error = false;                 ///< if a checkpoint cannot be written, warn and continue training
  bool verbose = false;                           ///< log the plan at the start, and each checkpoint
};

/// Maintains two pointers beside the checkpoints: `best` and `last`. A checkpoint that is no longer needed is removed
/// after the new one is safely on disk. Each global_step is written once, however many rules request it. If the
/// monitored value is not known yet at the step or time of a rule, the rule saves after the next validation instead.
class ModelCheckpoint : public CheckpointPolicy {
 public:
  /// Throws UsageError for options that contradict each other, and for a file name that names no folder.
  explicit ModelCheckpoint(const ModelCheckpointOptions& options = {});
  /// Saves according to custom rules. UsageError is thrown for `options` that also say when to save or what to keep.
  explicit ModelCheckpoint(CheckpointPlan plan, const ModelCheckpointOptions& options = {});

  /// Best checkpoint of the first rule with a monitor, or else of the first rule; empty before the first save.
  std::string best_model_path() const { return find("best"); }
  /// Newest checkpoint, if the plan keeps one as `last`; empty before the first save.
  std::string last_model_path() const { return find("last"); }
  /// Monitored value of the best checkpoint, and when a rule was last due; empty without a monitor.
  std::optional<double> best_model_score() const;
  std::optional<double> current_score() const { return current_score_; }
  /// Checkpoints that this rule keeps and their monitored values, the best first.
  std::vector<std::pair<std::string, double>> best_k_models() const;
  /// Checkpoint that will be removed next; empty while fewer than k are kept.
  std::string kth_best_model_path() const;
  std::optional<double> kth_value() const;  ///< its monitored value

  /// Describes the plan in plain sentences.
  std::string explain() const;

  std::string state_key() const override;
  std::string monitor() const override;
  StateMap state() const override;
  /// From a state of another directory only the best path is restored, since nothing there may be removed.
  void load_state(const StateMap& state) override;
  void setup(RunContext& run) override;
  void on_fit_start(RunContext& run) override;
  bool due(const RunContext& run, SavePoint point) override;
  std::vector<CheckpointAction> decide(RunContext& run, SavePoint point) override;
  std::vector<CheckpointAction> decide_interrupted(RunContext& run) override;
  std::vector<CheckpointAction> decide_exception(RunContext& run) override;
  bool continues_on_error() const override { return options_.continue_on_error; }
  std::string find(const std::string& which) const override;
  std::string directory() const override { return dir_; }

 private:
  struct Kept {
    std::string name;
    double score = 0;
  };
  struct Rule {
    CheckpointPlan::Rule says;
    std::vector<Kept> kept{};  // the best first
    bool deferred = false;     // waits until its monitor is known
    double timer = 0;          // when it last saved, in monotonic_seconds
    bool wants(double score) const;
  };

  static bool is_due(const When& when, double timer, const RunContext& run, SavePoint point);
  std::optional<double> score(Rule& rule, const RunContext& run, SavePoint point);
  std::vector<CheckpointAction> save(RunContext& run, const std::vector<std::pair<Rule*, double>>& into, bool as_last);
  std::vector<CheckpointAction> save_at_end(RunContext& run, const std::string& prefix);
  std::vector<CheckpointAction> actions_for(const std::string& saved, const std::vector<std::string>& before) const;
  std::vector<std::string> names() const;
  bool keeps(const std::string& name) const;
  std::string free_name(const RunContext& run, const std::string& prefix, const std::vector<std::string>& before) const;

  CheckpointPlan plan_;
  ModelCheckpointOptions options_;
  std::string dir_, best_elsewhere_;
  std::vector<Rule> rules_;
  std::string last_;  // target of the pointer `last`
  std::optional<double> current_score_;
  std::int64_t last_step_ = -1;
  std::string last_saved_;
  bool validated_ = false;
  double last_timer_ = 0;  // when `last` was saved, in monotonic_seconds
};

}  // namespace levin
