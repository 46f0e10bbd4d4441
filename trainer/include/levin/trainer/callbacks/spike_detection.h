#pragma once
// Ends a run whose loss spikes, before further steps are affected.

#include <levin/trainer/callbacks/early_stopping.h>

#include <deque>

namespace levin {

/// Thrown when the loss spiked or is not finite. skip_batches.json lists the batches concerned.
class TrainingSpike : public Error {
 public:
  /// `epoch` and `batch` are those of the loss, from 0.
  TrainingSpike(std::int64_t epoch, int batch, const std::string& what) : Error(what), epoch_(epoch), batch_(batch) {}
  /// The epoch and its batch whose loss spiked, from 0.
  std::int64_t epoch() const { return epoch_; }
  int batch() const { return batch_; }

 private:
  std::int64_t epoch_;
  int batch_;
};

/// Options of SpikeDetection.
struct SpikeDetectionOptions {
  Mode mode = Mode::min;                         ///< max: larger losses are better
  std::int64_t window = 10;                      ///< number of batches whose losses are averaged
  std::int64_t warmup = 1;                       ///< number of batches at the start of each epoch that are not checked
  std::optional<double> atol{};                  ///< minimum absolute distance from the average; not checked if empty
  std::optional<double> rtol = 2.0;              ///< minimum distance from the average, relative to it
  std::string exclude_batches_path{};            ///< a .json file, or a folder for skip_batches.json; root_dir if empty
  bool finite_only = true;                       ///< treat NaN and infinity as spikes
};

/// A spike is a loss that is worse than the previous one and at least atol and rtol away from the average of the last
/// `window` losses. Adds the indices of this batch and the previous one (whose update may have caused the spike) to the
/// list in the file, extending an existing list, and throws TrainingSpike. Every step waits for its loss.
class SpikeDetection : public Callback {
 public:
  /// Throws UsageError for a window below 1 and for a negative warmup.
  explicit SpikeDetection(SpikeDetectionOptions options = {});
  /// Indices of the batches detected so far.
  const std::vector<std::int64_t>& bad_batches() const { return bad_batches_; }

  std::string state_key() const override { return "SpikeDetection"; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  void setup(RunContext& run) override;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& batch, int index) override;

 private:
  bool is_spike(double loss) const;
  double average() const;
  [[noreturn]] void report(const RunContext& run, int index, double loss);

  SpikeDetectionOptions options_;
  std::string file_;
  std::deque<double> losses_;  // most recent losses that were not spikes
  double last_ = 0;
  std::vector<std::int64_t> bad_batches_;
};

}  // namespace levin
