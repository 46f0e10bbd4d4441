#pragma once
// Saves a checkpoint when a run fails.

#include <levin/trainer/callback.h>

namespace levin {

/// Saves when an exception or a signal ends fit, and removes that checkpoint when a fit completes. A fit without
/// ckpt_path resumes from it if it exists.
class OnExceptionCheckpoint : public CheckpointPolicy {
 public:
  /// `dirpath` defaults to <default_root_dir>/checkpoints. Throws UsageError if `filename` is not a valid folder name.
  explicit OnExceptionCheckpoint(std::string dirpath = {}, std::string filename = "on_exception");

  /// Folder of the checkpoint; its directory is known after setup.
  std::string path() const;
  std::string state_key() const override { return "OnExceptionCheckpoint"; }
  void setup(RunContext& run) override;
  bool due(const RunContext&, SavePoint) override { return false; }
  std::vector<CheckpointAction> decide(RunContext&, SavePoint) override { return {}; }
  std::vector<CheckpointAction> decide_interrupted(RunContext&) override;
  std::vector<CheckpointAction> decide_exception(RunContext&) override;
  std::vector<CheckpointAction> decide_finished(RunContext&) override;
  std::string resume_from() const override;
  std::string find(const std::string&) const override { return {}; }
  std::string directory() const override { return dir_; }

 private:
  std::string dirpath_, dir_;
  std::string filename_;
};

}  // namespace levin
