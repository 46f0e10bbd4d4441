#pragma once
// Predictions on their way to files, so that a long predict does not end in memory alone.

#include <levin/trainer/callback.h>

namespace levin {

enum class WriteInterval { batch, epoch, batch_and_epoch };

/// Derived callbacks write as they like, after each batch, after all, or both.
class BasePredictionWriter : public Callback {
 public:
  explicit BasePredictionWriter(WriteInterval interval = WriteInterval::batch) : interval_(interval) {}
  virtual void write_on_batch_end(RunContext&, const Tensor& /*prediction*/, const Batch&, int /*index*/) {}
  virtual void write_on_epoch_end(RunContext&, const std::vector<Tensor>& /*predictions*/) {}

  void on_predict_epoch_start(RunContext& run) override;
  void on_predict_batch_end(RunContext& run, const Batch& batch, int index) override;
  void on_predict_epoch_end(RunContext& run) override;

 private:
  WriteInterval interval_;
  std::vector<Tensor> predictions_;
};

/// Writes npy files: predictions_rank0_batch000012.npy after each batch, predictions_rank0.npy with all of them joined
/// along their first dimension at the end.
class PredictionWriter : public BasePredictionWriter {
 public:
  /// Throws UsageError for an empty folder. The folder is made.
  explicit PredictionWriter(std::filesystem::path output_dir, WriteInterval interval = WriteInterval::batch);
  void setup(RunContext& run) override;
  void write_on_batch_end(RunContext& run, const Tensor& prediction, const Batch& batch, int index) override;
  void write_on_epoch_end(RunContext& run, const std::vector<Tensor>& predictions) override;

 private:
  std::filesystem::path dir_;
};

}  // namespace levin
