#include <levin/trainer/callbacks/prediction_writer.h>

#include <levin/autograd/ops.h>
#include <levin/data/npy.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

namespace levin {

void BasePredictionWriter::on_predict_epoch_start(RunContext&) { predictions_.clear(); }

void BasePredictionWriter::on_predict_batch_end(RunContext& run, const Batch& batch, int index) {
  if (!run.prediction.defined()) return;
  if (interval_ != WriteInterval::epoch) write_on_batch_end(run, run.prediction, batch, index);
  if (interval_ != WriteInterval::batch) predictions_.push_back(run.prediction);
}

void BasePredictionWriter::on_predict_epoch_end(RunContext& run) {
  if (interval_ != WriteInterval::batch) write_on_epoch_end(run, predictions_);
  predictions_.clear();
}

PredictionWriter::PredictionWriter(std::filesystem::path output_dir, WriteInterval interval)
    : BasePredictionWriter(interval), dir_(std::move(output_dir)) {
  if (dir_.empty()) throw UsageError("[PredictionWriter] output_dir is empty. Name the folder of the predictions.");
}

void PredictionWriter::setup(RunContext& run) {
  if (run.stage != Stage::predict) return;
  std::error_code code;
  std::filesystem::create_directories(dir_, code);
  if (code)
    throw IoError(fmt::format("[PredictionWriter] {} cannot be created: {}. Choose another folder.", dir_.string(),
                              code.message()));
}

namespace {

/// True if this rank writes; if all ranks have the same predictions, only rank zero does.
bool writes(const RunContext& run) { return run.strategy->data_ranks() > 1 || run.strategy->is_global_zero(); }

}  // namespace

void PredictionWriter::write_on_batch_end(RunContext& run, const Tensor& prediction, const Batch&, int index) {
  if (!writes(run)) return;
  const auto name = fmt::format("predictions_rank{}_batch{:06}.npy", run.strategy->rank(), index);
  data::save_npy(dir_ / name, prediction.to(kCpu));
}

void PredictionWriter::write_on_epoch_end(RunContext& run, const std::vector<Tensor>& predictions) {
  if (predictions.empty() || !writes(run)) return;
  data::save_npy(dir_ / fmt::format("predictions_rank{}.npy", run.strategy->rank()), cat(predictions, 0).to(kCpu));
}

}  // namespace levin
