#pragma once
// Callbacks that only look: rates, throughput, gradients, the machine. What they see is logged like a module's values,
// and what they log changes no weight.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <deque>
#include <functional>

namespace levin {

struct LearningRateMonitorOptions {
  std::optional<Interval> logging_interval{};  ///< by default that of each optimizer's scheduler, step without one
  bool log_momentum = false;                   ///< momentum or beta1, as <name>-momentum
  bool log_weight_decay = false;               ///< as <name>-weight_decay
  std::string log_key_prefix{};
};

/// Logs the rate of every parameter group, that which the step or epoch works with. Names: the scheduler's own, else
/// lr-AdamW, lr-AdamW-1 for the second of that kind, lr-AdamW/pg1 and /pg2 where there are several groups.
class LearningRateMonitor : public Callback {
 public:
  explicit LearningRateMonitor(LearningRateMonitorOptions options = {}) : options_(std::move(options)) {}
  void on_train_batch_start(RunContext& run, const Batch& batch, int index) override;
  void on_train_epoch_start(RunContext& run) override;

 private:
  void log(RunContext& run, Interval interval) const;
  LearningRateMonitorOptions options_;
};

struct GradientNormMonitorOptions {
  double norm_type = 2.0;      ///< infinity for the largest element
  bool per_parameter = false;  ///< each parameter's own norm too, as grad_2.0_norm/<parameter>
};

/// Logs the norm of all gradients as grad_2.0_norm_total, before clipping and after unscaling, every log_every_n_steps.
class GradientNormMonitor : public Callback {
 public:
  /// Throws UsageError for a norm_type of 0 or less.
  explicit GradientNormMonitor(GradientNormMonitorOptions options = {});
  void on_before_optimizer_step(RunContext& run) override;

 private:
  GradientNormMonitorOptions options_;
};

struct ThroughputMonitorOptions {
  std::function<std::int64_t(const Batch&)> batch_size_fn{};  ///< samples of a batch; Batch::size when empty
  std::function<std::int64_t(const Batch&)> length_fn{};      ///< items of a batch, such as tokens
  std::int64_t window = 100;                                  ///< batches over which rates are averaged
  std::function<double(const Batch&)> flops_fn{};             ///< floating operations of a training batch
  double available_flops = 0;       ///< of the device, a second; with flops_fn gives mfu, the share that is used
  std::function<double()> clock{};  ///< seconds that never go back; the machine's steady clock when empty
};

/// Logs every log_every_n_steps: train/time (seconds of training so far), train/batches, train/samples, train/lengths,
/// and over the window train/device/batches_per_sec, samples_per_sec, items_per_sec, flops_per_sec and mfu. The clock
/// is read when the host has queued the step; on a CUDA device that is the same on the average over a window.
class ThroughputMonitor : public Callback {
 public:
  explicit ThroughputMonitor(ThroughputMonitorOptions options = {});
  std::string state_key() const override { return "ThroughputMonitor"; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  void on_train_start(RunContext& run) override;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& batch, int index) override;
  void on_validation_start(RunContext& run) override;
  void on_validation_end(RunContext& run) override;

 private:
  struct Sums {
    double time = 0, flops = 0;
    std::int64_t batches = 0, samples = 0, lengths = 0;
  };
  void log(RunContext& run) const;

  ThroughputMonitorOptions options_;
  Sums total_;
  std::deque<Sums> marks_;  // the totals after each batch of the window, and those before it
  double last_ = 0;         // the clock when training last went on
  double paused_ = 0;
};

struct DeviceStatsMonitorOptions {
  std::optional<bool> cpu_stats{};         ///< by default where training runs on the CPU
  std::vector<std::string> filter_keys{};  ///< log only names that contain one of these; all when empty
};

/// Logs every log_every_n_steps, at the start and at the end of a batch, as DeviceStatsMonitor.on_train_batch_start/KEY
/// and DeviceStatsMonitor.on_train_batch_end/KEY: allocated_bytes and peak_allocated_bytes of the device's allocator,
/// and of the machine (from /proc) cpu_percent since the last look, cpu_vm_percent, cpu_swap_percent,
/// process_rss_bytes.
class DeviceStatsMonitor : public Callback {
 public:
  explicit DeviceStatsMonitor(DeviceStatsMonitorOptions options = {}) : options_(std::move(options)) {}
  void on_train_batch_start(RunContext& run, const Batch& batch, int index) override;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& batch, int index) override;

 private:
  void log(RunContext& run, const char* hook);
  DeviceStatsMonitorOptions options_;
  double busy_ = 0, all_ = 0;  // ticks of all cores at the last look
};

}  // namespace levin
