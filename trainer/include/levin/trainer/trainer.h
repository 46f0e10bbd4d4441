#pragma once
// The Trainer: trains, validates, tests and predicts with a LevinModule.

#include <levin/core/owned_ptr.h>
#include <levin/trainer/callback.h>
#include <levin/trainer/callbacks/model_checkpoint.h>
#include <levin/trainer/checkpoint/load_from_checkpoint.h>
#include <levin/trainer/data_module.h>
#include <levin/trainer/fabric.h>
#include <levin/trainer/loggers/logger.h>
#include <levin/trainer/module.h>
#include <levin/trainer/signals.h>

namespace levin {

/// Trains, validates, tests and predicts. One Trainer makes one run at a time; it keeps the state of the last one. With
/// several ranks each process makes the same calls.
///
///     Trainer trainer({.max_epochs = 5, .precision = "bf16-mixed"});
///     trainer.fit(module, train_loader, val_loader);
class Trainer {
 public:
  /// Throws UsageError for an invalid configuration or one that requires parts that are not built.
  explicit Trainer(TrainerConfig config = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains on data.train and validates on data.val. `ckpt_path` resumes a run with the same bits: a checkpoint folder,
  /// or "last" or "best" of this trainer's ModelCheckpoint. Throws Interrupted after a signal, once the checkpoint is
  /// saved; IoError or StateError if a checkpoint is damaged or belongs to another network.
  void fit(LevinModule& module, const DataModule& data, const std::string& ckpt_path = {});
  /// Takes the data from a data module or, for DataModule{}, from the module's own hooks.
  void fit(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path = {});
  /// Takes loaders that the caller owns.
  void fit(LevinModule& module, data::DataLoader& train, const Loaders& val = {}, const std::string& ckpt_path = {});

  /// Metrics by name, one map for each loader. With several loaders the names end in "/dataloader_idx_N"; values logged
  /// in epoch hooks or with add_dataloader_idx = false are in every map.
  using Results = std::vector<std::map<std::string, double>>;

  /// Returns the metrics of one pass. Without `data`, uses those of the last fit. With `ckpt_path`, loads its weights
  /// first. Throws UsageError without a loader, or if the module lacks the step.
  Results validate(LevinModule& module, const DataModule& data = {}, const std::string& ckpt_path = {});
  Results validate(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path = {});
  /// Takes a DataLoader, or several: `trainer.validate(model, Loaders{clean, noisy})`.
  template <GivesLoaders L>
  Results validate(LevinModule& module, L&& val, const std::string& ckpt_path = {}) {
    return validate(module, DataModule{.val = Loaders(std::forward<L>(val))}, ckpt_path);
  }
  /// The same with test_step and the loaders for test.
  Results test(LevinModule& module, const DataModule& data = {}, const std::string& ckpt_path = {});
  Results test(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path = {});
  template <GivesLoaders L>
  Results test(LevinModule& module, L&& loaders, const std::string& ckpt_path = {}) {
    return test(module, DataModule{.test = Loaders(std::forward<L>(loaders))}, ckpt_path);
  }
  /// Returns what predict_step returned, by loader and batch; takes its arguments as validate does. The tensors stay on
  /// their device.
  Predictions predict(LevinModule& module, const DataModule& data = {}, const std::string& ckpt_path = {});
  Predictions predict(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path = {});
  template <GivesLoaders L>
  Predictions predict(LevinModule& module, L&& loaders, const std::string& ckpt_path = {}) {
    return predict(module, DataModule{.predict = Loaders(std::forward<L>(loaders))}, ckpt_path);
  }
  /// Saves the state of the running or last fit, so that another can resume from it, or its weights only. When called
  /// in a hook, it contains the finished work: an unfinished batch or validation is repeated. Throws UsageError before
  /// any fit, and IoError.
  void save_checkpoint(const std::string& path, bool weights_only = false);

  /// The configuration, in which barebones has already switched off what it excludes.
  const TrainerConfig& config() const;
  /// Position of this or the last fit, and two of its counts.
  const TrainState& state() const;
  std::int64_t current_epoch() const { return state().epoch; }
  std::int64_t global_step() const { return state().global_step; }
  /// The values that this or the last run logged.
  const MetricStore& metrics() const;
  std::map<std::string, double> callback_metrics() const;      ///< latest values that can be monitored
  std::map<std::string, double> logged_metrics() const;        ///< latest values sent to loggers
  std::map<std::string, double> progress_bar_metrics() const;  ///< latest values beside the progress bar
  bool is_last_batch() const;  ///< true while training processes the last batch of its epoch
  /// Batches per epoch of this or the last fit, after limits; -1 if unknown, 0 before any fit.
  std::int64_t num_training_batches() const;
  /// The same for the last validation, sanity check, test and prediction, by loader.
  const std::vector<std::int64_t>& num_val_batches() const;
  const std::vector<std::int64_t>& num_sanity_val_batches() const;
  const std::vector<std::int64_t>& num_test_batches() const;
  const std::vector<std::int64_t>& num_predict_batches() const;
  /// Optimizer steps of this or the last fit from first to last: epochs x accumulation windows, at most max_steps; -1
  /// if unlimited. Takes a GradientAccumulationScheduler into account. Throws UsageError before any fit.
  std::int64_t estimated_stepping_batches() const;
  bool should_stop() const;       ///< a stop was requested in this or the last run
  bool interrupted() const;       ///< a signal ended the last run
  bool received_sigterm() const;  ///< in this run, or the last one
  /// Outcome of the last run; `interrupted` while one is in progress.
  RunStatus status() const;
  /// The Fabric (device, strategy, precision) that the Trainer uses.
  Fabric& fabric();
  /// As in Fabric.
  int world_size() const;
  int global_rank() const;
  int local_rank() const;
  int node_rank() const;
  bool is_global_zero() const;
  /// Token that ends the run after the current step; thread-safe.
  StopToken& stop_token();
  /// Checkpoint from which this or the last run loaded its weights; empty if none.
  const std::string& ckpt_path() const;
  /// Folder that "best" or "last" refers to; empty if there is none.
  std::string checkpoint_path(const std::string& which) const;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

}  // namespace levin
