#pragma once
// What a person sees while a run is on its way.

#include <levin/trainer/callback.h>

#include <chrono>
#include <cstdio>

namespace levin {

struct ProgressBarOptions {
  std::FILE* out = stdout;
  std::optional<bool> terminal{};  ///< overwrites one line; found out when not given
  double max_rate = 10.0;          ///< refreshes a second on a terminal
  double plain_interval = 10.0;    ///< seconds between lines elsewhere; every epoch ends with one
};

/// "epoch 2/5 [=====>    ] 210/430  49 %  31.2 batches/s  left 0:07  train_loss 0.2871  val_acc 0.8930"
class ProgressBar : public Callback {
 public:
  explicit ProgressBar(ProgressBarOptions options = {});

  void on_train_epoch_start(RunContext& run) override;
  void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int index) override;
  void on_train_epoch_end(RunContext& run) override;
  void on_validation_batch_end(RunContext& run, const Batch&, int index) override;
  void on_test_batch_end(RunContext& run, const Batch&, int index) override;
  void on_predict_batch_end(RunContext& run, const Batch&, int index) override;
  void on_validation_start(RunContext& run) override;
  void on_validation_end(RunContext& run) override;
  void on_test_start(RunContext& run) override;
  void on_test_end(RunContext& run) override;
  void on_predict_start(RunContext& run) override;
  void on_predict_end(RunContext& run) override;
  void on_exception(RunContext& run, const std::exception&) override;
  bool is_monitoring() const override { return true; }  // its last line shows the epoch's values

 private:
  using Clock = std::chrono::steady_clock;
  struct Timing {
    Clock::time_point start{};
    std::int64_t first = 0;  // batches done at the start
  };
  void start(Timing& timing, std::int64_t first);
  bool due(std::int64_t done, std::int64_t total);
  void show(RunContext& run, const std::string& title, const Timing& timing, std::int64_t done, std::int64_t total,
            bool last);
  std::string epoch_title(const RunContext& run) const;
  void write(const std::string& line, bool last);

  ProgressBarOptions options_;
  bool terminal_;
  Timing train_, eval_;
  Clock::time_point shown_{};
  std::size_t width_ = 0;  // of the line on the terminal
};

}  // namespace levin
