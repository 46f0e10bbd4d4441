#pragma once
// Between policies, which decide, and the files: takes the state of a fit apart and puts it together again.

#include <levin/trainer/checkpoint.h>
#include <levin/trainer/optimizers.h>
#include <levin/trainer/step_runner.h>

#include "checkpoint_writer.h"
#include "run.h"

namespace levin {

class CheckpointKeeper {
 public:
  CheckpointKeeper(Run& run, Optimizers& optimizers, StepRunner& runner, const DataModule& data);

  /// Says that all hooks of this moment have run: a checkpoint that is taken before the next such moment begins here,
  /// so that what lies between is done again.
  void mark(SavePoint point);
  /// The same, then asks all policies and does what they say. Throws IoError when a checkpoint could not be written, or
  /// the one before that was written beside training; the policy then stands where it stood before.
  void save_point(SavePoint point);
  /// Saves what is needed to go on after a signal; the folder, empty when no policy wants one.
  std::filesystem::path save_interrupted();
  /// The same after an exception; what goes wrong now is a warning.
  void save_exception() noexcept;
  /// Saves for a SLURM job that begins again: root_dir/hpc_ckpt_k, in the place of the former one.
  std::filesystem::path save_for_requeue();
  /// Fit has come to its end.
  void finish();

  struct Snapshot {
    bool weights_only = false;
    bool with_hooks = true;  ///< else callbacks and module are not asked for what they keep
  };
  /// Everything but the order of the files. All ranks take part; rank zero's is whole, or has its shards.
  Checkpoint snapshot(const Snapshot& what);
  /// Writes one, by rank zero or each rank its part; the others wait.
  void save(const std::filesystem::path& path, const Snapshot& what);
  /// Puts such a state back; throws StateError, naming the folder, when it is of another network or optimizer.
  void restore(const Checkpoint& checkpoint, const std::filesystem::path& folder);
  /// The part of it that has to wait for the loaders of the validation. Throws StateError where it stood within one, of
  /// other data.
  void restore_val();

 private:
  /// What a checkpoint has to know of the last moment at which everything was done.
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
  std::vector<std::uint8_t> due_;  // by policy, at the save point in hand; kept for its memory
  Mark mark_;
  std::vector<data::LoaderState> saved_val_;  // until their loaders are there
  CheckpointPolicy* writing_for_ = nullptr;  // whose checkpoint the writer has
  StateMap before_writing_;                  // its state then
  CheckpointWriter writer_;
  bool alone_ = false;  // the other ranks take part no more
};

}  // namespace levin
