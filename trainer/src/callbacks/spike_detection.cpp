#include <levin/trainer/callbacks/spike_detection.h>

#include <levin/core/io.h>
#include <levin/trainer/module.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

namespace levin {

SpikeDetection::SpikeDetection(SpikeDetectionOptions options) : options_(std::move(options)) {
  if (options_.window < 1)
    throw UsageError(fmt::format("[SpikeDetection] window is {}. Give 1 or more.", options_.window));
  if (options_.warmup < 0)
    throw UsageError(fmt::format("[SpikeDetection] warmup is {}. Give 0 or more.", options_.warmup));
}

StateMap SpikeDetection::state() const {
  StateMap s;
  s.set("losses", std::vector<double>(losses_.begin(), losses_.end()));
  s.set("last", last_);
  s.set("bad_batches", bad_batches_);
  return s;
}

void SpikeDetection::load_state(const StateMap& s) {
  const auto losses = s.get<std::vector<double>>("losses");
  losses_.assign(losses.begin(), losses.end());
  last_ = s.get<double>("last");
  bad_batches_ = s.get<std::vector<std::int64_t>>("bad_batches");
}

void SpikeDetection::setup(RunContext& run) {
  if (run.stage != Stage::fit) return;
  losses_.clear();
  last_ = 0;
  bad_batches_.clear();
  std::filesystem::path file = options_.exclude_batches_path.empty() ? run.root_dir : options_.exclude_batches_path;
  if (file.extension() != ".json") file /= "skip_batches.json";
  file_ = file;
  if (!std::filesystem::exists(file_)) return;
  const auto list = nlohmann::json::parse(io::read_text(file_), nullptr, /*allow_exceptions=*/false);
  const auto is_index = [](const auto& entry) { return entry.is_number_integer(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_index))
    throw IoError(fmt::format("[SpikeDetection] {} is not a list of batch indices. Name another file.", file_));
  bad_batches_ = list.get<std::vector<std::int64_t>>();
}

double SpikeDetection::average() const {
  double sum = 0;
  for (const double loss : losses_) sum += loss;
  return sum / static_cast<double>(losses_.size());
}

bool SpikeDetection::is_spike(double loss) const {
  if (options_.finite_only && !std::isfinite(loss)) return true;
  if (losses_.empty()) return false;
  const double change = loss - last_;
  if (options_.mode == Mode::min ? change <= 0 : change >= 0) return false;
  const double mean = average(), distance = std::abs(loss - mean);
  return (!options_.atol || distance >= std::abs(*options_.atol)) &&
         (!options_.rtol || distance >= std::abs(*options_.rtol * mean));
}

void SpikeDetection::on_train_batch_end(RunContext& run, const StepOutput& out, const Batch&, int index) {
  if (out.empty() || run.config.fast_dev_run > 0) return;
  const double loss = out.loss().item<double>();
  if (index >= options_.warmup && is_spike(loss)) report(run, index, loss);
  if (!std::isfinite(loss)) return;
  losses_.push_back(loss);
  if (std::ssize(losses_) > options_.window) losses_.pop_front();
  last_ = loss;
}

void SpikeDetection::report(const RunContext& run, int index, double loss) {
  if (index > 0) bad_batches_.push_back(index - 1);
  bad_batches_.push_back(index);
  const auto parent = std::filesystem::absolute(file_).parent_path();
  std::error_code ignored;  // write_file reports errors of the folder
  std::filesystem::create_directories(parent, ignored);
  io::write_file(file_, nlohmann::json(bad_batches_).dump(4) + "\n");
  throw TrainingSpike(
      run.state.epoch, index,
      fmt::format("[SpikeDetection] the loss of batch {} of epoch {} is {}, the average of the {} before is {}. Resume "
                  "from a checkpoint before it, without the batches in {}.",
                  index, run.state.epoch, loss, losses_.size(), losses_.empty() ? 0.0 : average(), file_));
}

}  // namespace levin
