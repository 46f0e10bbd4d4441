#pragma once
// Which checkpoints are kept: the best ones by a watched value, and the newest.

#include <levin/trainer/early_stopping.h>

namespace levin {

struct ModelCheckpointOptions {
  std::filesystem::path dirpath{};        ///< <default_root_dir>/checkpoints when empty
  std::string filename = "{epoch}-{step}";  ///< {name} stands for name=value; values of the metrics too
  std::string monitor{};                  ///< empty: the newest count as the best
  Mode mode = Mode::min;
  std::int64_t save_top_k = 1;            ///< -1 for all, 0 for none
  bool save_last = true;                  ///< keeps the newest too, and the pointer `last` to it
  std::int64_t every_n_epochs = 0;        ///< 0 and 0: after every validation, or epoch where there is none
  std::int64_t every_n_train_steps = 0;   ///< counted in global_step; excludes every_n_epochs
};

/// Two pointers stand beside the checkpoints: `best` and `last`. A folder that neither the k best nor `last` needs is
/// removed after the new one is safe.
class ModelCheckpoint : public CheckpointPolicy {
 public:
  explicit ModelCheckpoint(ModelCheckpointOptions options = {});

  std::filesystem::path best_model_path() const { return find("best"); }
  std::filesystem::path last_model_path() const { return find("last"); }
  std::optional<double> best_model_score() const;
  /// The plan in one line for people.
  std::string explain() const;

  std::string state_key() const override { return "ModelCheckpoint/" + options_.monitor; }
  std::string monitor() const override { return options_.monitor; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  void setup(RunContext& run) override;
  std::vector<CheckpointAction> decide(RunContext& run, SavePoint point) override;
  std::vector<CheckpointAction> decide_interrupted(RunContext& run) override;
  std::filesystem::path find(const std::string& which) const override;
  std::filesystem::path directory() const override { return dir_; }

 private:
  struct Kept {
    std::string name;
    double score = 0;
  };
  bool is_due(const RunContext& run, SavePoint point) const;
  std::optional<double> score(const RunContext& run) const;
  bool better(double a, double b) const;
  std::string name_for(const RunContext& run) const;
  std::vector<CheckpointAction> keep(const std::string& name, std::optional<double> score);

  ModelCheckpointOptions options_;
  std::filesystem::path dir_;
  std::vector<Kept> best_;  // the best first
  std::string last_;
  std::int64_t last_step_ = -1;
};

}  // namespace levin
