#pragma once
// Writes predictions to files. Trainer::predict returns them as well.

#include <levin/trainer/callback.h>

namespace levin {

/// When predictions are written: after each batch, at the end of predict, or both.
enum class WriteInterval { batch, epoch, batch_and_epoch };

/// Base class of prediction writers. Derived classes write after each batch, at the end, or both.
class BasePredictionWriter : public Callback {
 public:
  /// For `epoch` and `batch_and_epoch` the writer holds all predictions until the end.
  explicit BasePredictionWriter(WriteInterval interval = WriteInterval::batch) : interval_(interval) {}
  /// Called after each batch that has a prediction, with the index of the batch among those of its loader.
  virtual void write_on_batch_end(RunContext&, const Tensor& /*prediction*/, const Batch&, int /*index*/) {}
  /// Called at the end; `predictions` are those of each loader, by batch.
  virtual void write_on_epoch_end(RunContext&, const Predictions& /*predictions*/) {}

  void on_predict_epoch_start(RunContext& run) override;
  void on_predict_batch_end(RunContext& run, const Batch& batch, int index) override;
  void on_predict_epoch_end(RunContext& run) override;

 private:
  WriteInterval interval_;
  Predictions predictions_;
};

/// Writes npy files: predictions_rank0_batch000012.npy after each batch, or predictions_rank0.npy at the end, with all
/// predictions concatenated along dimension 0. With several loaders the names hold the loader's number:
/// predictions_rank0_dataloader1_batch000012.npy.
class PredictionWriter : public BasePredictionWriter {
 public:
  /// Throws UsageError if `output_dir` is empty. The folder is created when predict begins; IoError if that fails.
  explicit PredictionWriter(std::string output_dir, WriteInterval interval = WriteInterval::batch);
  void setup(RunContext& run) override;
  void write_on_batch_end(RunContext& run, const Tensor& prediction, const Batch& batch, int index) override;
  void write_on_epoch_end(RunContext& run, const Predictions& predictions) override;

 private:
  std::string dir_;
};

}  // namespace levin
