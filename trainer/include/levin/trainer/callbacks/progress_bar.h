#pragma once
// Shows the progress of a run.

#include <levin/trainer/callback.h>

#include <cstdio>

namespace levin {

/// Options of ProgressBar.
struct ProgressBarOptions {
  std::FILE* out = stdout;         ///< receives the text; must stay open
  std::optional<bool> terminal{};  ///< redraw lines in place; by default detected (false if TERM=dumb)
  std::optional<bool> color{};     ///< by default true on a terminal unless NO_COLOR is set
  std::optional<bool> unicode{};   ///< draw bars with block characters; by default if the locale is UTF-8
  int columns = 0;                 ///< width of the terminal, 0 to query it; parts that do not fit are left out
  double max_rate = 10.0;          ///< maximum refreshes per second on a terminal
  bool data_wait = false;          ///< show the fraction of the epoch's time that training waited for the loader
  bool memory = false;             ///< show the bytes that tensors hold on the module's device
  double plain_interval = 10.0;    ///< seconds between lines on other outputs; every epoch ends with one
};

/// Shows the progress of a run on rank zero. Format on a terminal, with a validation inside the epoch as a second line:
///   epoch 2/5 [==========>         ] 210/430  31.2 batches/s  left 0:07  train_loss 0.2871  val_acc 0.8930
///     validation [=====>              ] 12/40  85.0 batches/s  left 0:00
/// Other outputs get plain lines at intervals. The rate and the time left of an epoch exclude its validations.
class ProgressBar : public Callback {
 public:
  /// Detects here what the options leave open.
  explicit ProgressBar(ProgressBarOptions options = {});

  void on_train_start(RunContext& run) override;
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
  struct Timing {
    double start = 0;        // in monotonic_seconds
    std::int64_t first = 0;  // batches finished at the start
    double paused = 0;       // seconds spent elsewhere
  };
  /// State of one bar.
  struct Bar {
    std::string title;
    std::int64_t done = 0, total = 0;
    double seconds = 0, rate = 0;
    MetricStore::Values values{};
    std::vector<std::string> stats{};
    bool nested = false, last = false;
  };
  void start(Timing& timing, std::int64_t first);
  bool due(std::int64_t done, std::int64_t total);
  Bar bar(const RunContext& run, std::string title, const Timing& timing, std::int64_t done, std::int64_t total) const;
  std::vector<std::string> stats(const RunContext& run) const;
  void show_eval(RunContext& run, const char* title, std::int64_t done, bool last);
  std::string epoch_title(const RunContext& run) const;
  std::string line_of(const Bar& bar) const;
  std::string painted(const char* code, const std::string& text) const;
  void draw(const std::vector<Bar>& bars);

  ProgressBarOptions options_;
  bool terminal_, color_, unicode_;
  Timing train_, eval_;
  Bar epoch_;              // kept while a nested validation is shown
  double shown_ = 0;       // when the bars were drawn, in monotonic_seconds
  std::size_t lines_ = 0;  // lines of the terminal that the bars occupy
};

}  // namespace levin
