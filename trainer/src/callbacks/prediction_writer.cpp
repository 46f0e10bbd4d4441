#include <levin/trainer/callbacks/prediction_writer.h>

#include <levin/autograd/ops.h>
#include <levin/data/npy.h>
#include <levin/trainer/data_module.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <filesystem>

namespace levin {
namespace {

bool several(const RunContext& run) { return run.data->predict.size() > 1; }
int loader_of(const RunContext& run, const Batch& batch) { return several(run) ? batch.dataloader_idx : 0; }

std::string file_in(const std::string& dir, const RunContext& run, int loader, const std::string& rest) {
  const std::string of_loader = several(run) ? fmt::format("_dataloader{}", loader) : "";
  return std::filesystem::path(dir) / fmt::format("predictions_rank{}{}{}.npy", run.strategy->rank(), of_loader, rest);
}

}  // namespace

void BasePredictionWriter::on_predict_epoch_start(RunContext& run) {
  predictions_.assign(run.data->predict.size(), {});
}

void BasePredictionWriter::on_predict_batch_end(RunContext& run, const Batch& batch, int index) {
  if (!run.prediction.defined()) return;
  if (interval_ != WriteInterval::epoch) write_on_batch_end(run, run.prediction, batch, index);
  if (interval_ != WriteInterval::batch)
    predictions_.at(static_cast<std::size_t>(loader_of(run, batch))).push_back(run.prediction);
}

void BasePredictionWriter::on_predict_epoch_end(RunContext& run) {
  if (interval_ != WriteInterval::batch) write_on_epoch_end(run, predictions_);
  predictions_.clear();
}

PredictionWriter::PredictionWriter(std::string output_dir, WriteInterval interval)
    : BasePredictionWriter(interval), dir_(std::move(output_dir)) {
  if (dir_.empty()) throw UsageError("[PredictionWriter] output_dir is empty. Name the folder of the predictions.");
}

void PredictionWriter::setup(RunContext& run) {
  if (run.stage != Stage::predict) return;
  std::error_code code;
  std::filesystem::create_directories(dir_, code);
  if (code)
    throw IoError(
        fmt::format("[PredictionWriter] {} cannot be created: {}. Choose another folder.", dir_, code.message()));
}

namespace {

/// True if this rank writes; if all ranks have the same predictions, only rank zero does.
bool writes(const RunContext& run) { return run.strategy->data_ranks() > 1 || run.strategy->is_global_zero(); }

}  // namespace

void PredictionWriter::write_on_batch_end(RunContext& run, const Tensor& prediction, const Batch& batch, int index) {
  if (!writes(run)) return;
  data::save_npy(file_in(dir_, run, loader_of(run, batch), fmt::format("_batch{:06}", index)), prediction.to(kCpu));
}

void PredictionWriter::write_on_epoch_end(RunContext& run, const Predictions& predictions) {
  if (!writes(run)) return;
  for (std::size_t k = 0; k < predictions.size(); ++k)
    if (!predictions[k].empty())
      data::save_npy(file_in(dir_, run, static_cast<int>(k), ""), cat(predictions[k], 0).to(kCpu));
}

}  // namespace levin
