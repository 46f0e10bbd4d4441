#pragma once
// Trains, validates, tests and predicts: the loop around a LevinModule.

#include <levin/core/owned_ptr.h>
#include <levin/trainer/callback.h>
#include <levin/trainer/callbacks/model_checkpoint.h>
#include <levin/trainer/data_module.h>
#include <levin/trainer/fabric.h>
#include <levin/trainer/load_from_checkpoint.h>
#include <levin/trainer/logger.h>
#include <levin/trainer/module.h>
#include <levin/trainer/signals.h>

namespace levin {

class Trainer {
 public:
  /// Throws UsageError for a configuration that makes no sense or needs parts that are not built.
  explicit Trainer(TrainerConfig config = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains on data.train and validates on data.val. `ckpt_path` continues a run bit by bit: the folder of a
  /// checkpoint, or "last" or "best" of this trainer's own ModelCheckpoint. Throws Interrupted after a signal, when the
  /// checkpoint is saved; IoError or StateError for a checkpoint that is damaged or of another network.
  void fit(LevinModule& module, const DataModule& data, const std::string& ckpt_path = {});
  /// The same with data that a data module makes, or (DataModule{}) the module's own hooks.
  void fit(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path = {});
  void fit(LevinModule& module, data::DataLoader& train);
  void fit(LevinModule& module, data::DataLoader& train, data::DataLoader& val, const std::string& ckpt_path = {});

  /// Metrics of one pass by name. Without `data`, those of the last fit. With `ckpt_path` its weights are loaded first.
  std::map<std::string, double> validate(LevinModule& module, const DataModule& data = {},
                                         const std::string& ckpt_path = {});
  std::map<std::string, double> validate(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path = {});
  std::map<std::string, double> test(LevinModule& module, const DataModule& data = {},
                                     const std::string& ckpt_path = {});
  std::map<std::string, double> test(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path = {});
  /// What predict_step gave for every batch.
  std::vector<Tensor> predict(LevinModule& module, const DataModule& data = {}, const std::string& ckpt_path = {});

  std::vector<Tensor> predict(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path = {});
  /// Saves the state of the fit that runs or ran last, so that another goes on from it, or its weights only. Called in
  /// a hook, it has what is finished: a batch or validation that is not is done again. Throws UsageError before any
  /// fit, IoError.
  void save_checkpoint(const std::filesystem::path& path, bool weights_only = false);

  const TrainerConfig& config() const;
  const TrainState& state() const;
  std::int64_t current_epoch() const { return state().epoch; }
  std::int64_t global_step() const { return state().global_step; }
  const MetricStore& metrics() const;
  std::map<std::string, double> callback_metrics() const;      ///< latest values that a monitor may name
  std::map<std::string, double> logged_metrics() const;        ///< latest values for loggers
  std::map<std::string, double> progress_bar_metrics() const;  ///< latest values beside the progress bar
  bool is_last_batch() const;                                  ///< training has the last batch of its epoch in hand
  /// Batches of an epoch, as the limits leave them, of this fit or the last one; -1 where nobody knows, 0 before any.
  std::int64_t num_training_batches() const;
  /// The same of the last validation, sanity check, test and prediction, by loader.
  const std::vector<std::int64_t>& num_val_batches() const;
  const std::vector<std::int64_t>& num_sanity_val_batches() const;
  const std::vector<std::int64_t>& num_test_batches() const;
  const std::vector<std::int64_t>& num_predict_batches() const;
  /// Optimizer steps from the first to the last of this fit or the last one: epochs x accumulation windows, at most
  /// max_steps; -1 without an end. A GradientAccumulationScheduler counts as it is planned. Throws UsageError before
  /// any fit.
  std::int64_t estimated_stepping_batches() const;
  bool should_stop() const;
  bool interrupted() const;       ///< a signal ended the last run
  bool received_sigterm() const;  ///< this run, or the last one
  /// How the last run ended; interrupted while one is going on.
  RunStatus status() const;
  /// Device and precision, as the Trainer uses them.
  Fabric& fabric();
  int world_size() const;
  int global_rank() const;
  int local_rank() const;
  int node_rank() const;
  bool is_global_zero() const;
  /// Ends the run after the current step; may be called from any thread.
  StopToken& stop_token();
  /// The checkpoint of which this run or the last one took its weights; empty for none.
  const std::filesystem::path& ckpt_path() const;
  /// The folder that "best" or "last" stands for; empty when there is none.
  std::filesystem::path checkpoint_path(const std::string& which) const;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

}  // namespace levin
