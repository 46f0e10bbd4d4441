#pragma once
// Ends a run whose loss jumps, before the jump has ruined more than the last steps.

#include <levin/trainer/callbacks/early_stopping.h>

#include <deque>

namespace levin {

/// The loss jumped, or is no number. The batches behind it stand in skip_batches.json.
class TrainingSpike : public Error {
 public:
  TrainingSpike(std::int64_t epoch, int batch, const std::string& what) : Error(what), epoch_(epoch), batch_(batch) {}
  std::int64_t epoch() const { return epoch_; }
  int batch() const { return batch_; }

 private:
  std::int64_t epoch_;
  int batch_;
};

struct SpikeDetectionOptions {
  Mode mode = Mode::min;                         ///< max: the loss is better when larger
  std::int64_t window = 10;                      ///< batches whose losses are averaged
  std::int64_t warmup = 1;                       ///< batches of each epoch that are not judged
  std::optional<double> atol{};                  ///< at least this far from the average; not asked when empty
  std::optional<double> rtol = 2.0;              ///< at least this many averages away from it
  std::filesystem::path exclude_batches_path{};  ///< a .json file, or the folder of skip_batches.json; empty: root_dir
  bool finite_only = true;                       ///< NaN and infinity are spikes
};

/// A spike is a loss that is worse than the one before, and as far from the average of the last `window` losses as both
/// atol and rtol ask. Throws TrainingSpike after it has added this batch and the one before (which may be what moved
/// the weights) to the list of indices in the file; a list that is there already is continued. Each step waits for its
/// loss.
class SpikeDetection : public Callback {
 public:
  explicit SpikeDetection(SpikeDetectionOptions options = {});
  /// Indices of batches that were found so far.
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
  std::filesystem::path file_;
  std::deque<double> losses_;  // the last ones that were no spikes
  double last_ = 0;
  std::vector<std::int64_t> bad_batches_;
};

}  // namespace levin
