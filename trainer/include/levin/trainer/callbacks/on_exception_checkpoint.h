#pragma once
// A checkpoint for the case that something goes wrong.

#include <levin/trainer/callback.h>

namespace levin {

/// Saves when an exception or a signal ends fit, and removes that checkpoint when a fit comes to its end. A fit that is
/// given no checkpoint goes on from it where there is one.
class OnExceptionCheckpoint : public CheckpointPolicy {
 public:
  /// `dirpath` is <default_root_dir>/checkpoints when empty. Throws UsageError for a filename that is none of a folder.
  explicit OnExceptionCheckpoint(std::filesystem::path dirpath = {}, std::string filename = "on_exception");

  std::filesystem::path path() const { return dir_ / filename_; }
  std::string state_key() const override { return "OnExceptionCheckpoint"; }
  void setup(RunContext& run) override;
  bool due(const RunContext&, SavePoint) override { return false; }
  std::vector<CheckpointAction> decide(RunContext&, SavePoint) override { return {}; }
  std::vector<CheckpointAction> decide_interrupted(RunContext&) override;
  std::vector<CheckpointAction> decide_exception(RunContext&) override;
  std::vector<CheckpointAction> decide_finished(RunContext&) override;
  std::filesystem::path resume_from() const override;
  std::filesystem::path find(const std::string&) const override { return {}; }
  std::filesystem::path directory() const override { return dir_; }

 private:
  std::filesystem::path dirpath_, dir_;
  std::string filename_;
};

}  // namespace levin
