#pragma once
// Connects policies, which decide, with the files: collects the state of a fit and restores it.

#include <levin/trainer/checkpoint/checkpoint.h>
#include <levin/trainer/optimizers.h>
#include <levin/trainer/step_runner.h>

#include <filesystem>

#include "src/checkpoint/checkpoint_writer.h"
#include "src/loops/run.h"

namespace levin {

class CheckpointKeeper {
 public:
  CheckpointKeeper(Run& run, Optimizers& optimizers, StepRunner& runner, const DataModule& data);

  /// Records that all hooks of this save point have run. A checkpoint taken before the next save point starts from
  /// here, so that everything in between is repeated.
  void mark(SavePoint point);
  /// Calls mark(), then executes the actions of all policies. Throws IoError if a checkpoint could not be written,
  /// including the previous asynchronous one; the policy is then reset to its state before.
  void save_point(SavePoint point);
  /// Saves a checkpoint to resume from after a signal; returns its folder, empty if no policy wants one.
  std::filesystem::path save_interrupted();
  /// The same after an exception; errors are only warnings.
  void save_exception() noexcept;
  /// Saves root_dir/hpc_ckpt_k for a requeued SLURM job and replaces the previous one.
  std::filesystem::path save_for_requeue();
  /// Called when fit completes.
  void finish();

  struct Snapshot {
    bool weights_only = false;
    bool with_hooks = true;  ///< if false, callbacks and module are not asked for their state
  };
  /// Collects everything except the layout of the files. Collective; rank zero's result is complete, or holds its
  /// shards.
  Checkpoint snapshot(const Snapshot& what);
  /// Writes a snapshot on rank zero, or each rank's part; the other ranks wait.
  void save(const std::filesystem::path& path, const Snapshot& what);
  /// Restores a snapshot; throws StateError with the folder if it belongs to another network or optimizer.
  void restore(const Checkpoint& checkpoint, const std::filesystem::path& folder);
  /// Restores the state of the validation loaders, once they exist. Throws StateError if the checkpoint is from within
  /// a validation on other data.
  void restore_val();

 private:
  /// State at the last save point.
  struct Mark {
    TrainState state{};
    data::LoaderState train{};
    std::vector<data::LoaderState> val{};
    GeneratorState rng{};
  };
  template <class F>
  std::filesystem::path ask(CheckpointPolicy& policy, const F& decide);
  bool write(CheckpointPolicy& policy, std::vector<CheckpointAction> list, std::shared_ptr<EncodedCheckpoint> contents,
             StateMap before);
  bool write_part(CheckpointPolicy& policy, const std::filesystem::path& path, const Checkpoint& state,
                  const StateMap& before);
  void collect();
  static void failed(CheckpointPolicy& policy, const StateMap& before, const IoError& error);
  Mark place() const;
  void save_training(Checkpoint& checkpoint, const Mark& at);
  void save_of_ranks(Checkpoint& checkpoint, const StateMap& own, bool open_window);
  void save_replicas(Checkpoint& checkpoint);
  void restore_replica(const Checkpoint& checkpoint, const std::filesystem::path& folder);
  StateMap own_part(const Checkpoint& checkpoint) const;
  data::LoaderState train_place() const;
  data::LoaderState train_place(const Checkpoint& checkpoint, const StateMap& own) const;

  Run& run_;
  Optimizers& optimizers_;
  StepRunner& runner_;
  const DataModule& data_;
  std::vector<CheckpointPolicy*> policies_;
  std::vector<std::uint8_t> due_;  // by policy, at the current save point; kept to reuse its memory
  Mark mark_;
  std::vector<data::LoaderState> saved_val_;  // until their loaders exist
  CheckpointPolicy* writing_for_ = nullptr;   // the policy whose checkpoint is being written
  StateMap before_writing_;                   // its state before that write
  CheckpointWriter writer_;
  bool alone_ = false;  // the other ranks no longer take part
};

}  // namespace levin
