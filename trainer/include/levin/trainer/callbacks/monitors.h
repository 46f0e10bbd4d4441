#pragma once
// Callbacks that only observe: learning rates, throughput, gradients, device statistics. They log values as a module
// does and change no weight.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <deque>
#include <functional>

namespace levin {

/// Options of LearningRateMonitor, with Lightning's names and defaults.
struct LearningRateMonitorOptions {
  std::optional<Interval> logging_interval{};  ///< by default that of each optimizer's scheduler, else step
  bool log_momentum = false;                   ///< log momentum or beta1 as <name>-momentum
  bool log_weight_decay = false;               ///< log as <name>-weight_decay
  std::string log_key_prefix{};                ///< prepended to each name
};

/// Logs the learning rate of every parameter group, as used by the current step or epoch. The name is the scheduler's,
/// else lr-AdamW, lr-AdamW-1 for the second optimizer of that type, and lr-AdamW/pg1, /pg2 for several groups.
class LearningRateMonitor : public Callback {
 public:
  explicit LearningRateMonitor(LearningRateMonitorOptions options = {}) : options_(std::move(options)) {}
  void on_train_batch_start(RunContext& run, const Batch& batch, int index) override;
  void on_train_epoch_start(RunContext& run) override;

 private:
  void log(RunContext& run, Interval interval) const;
  LearningRateMonitorOptions options_;
};

/// Options of GradientNormMonitor.
struct GradientNormMonitorOptions {
  double norm_type = 2.0;      ///< infinity for the maximum norm
  bool per_parameter = false;  ///< also log the norm of each parameter, as grad_2.0_norm/<parameter>
};

/// Logs the norm of all gradients as grad_2.0_norm_total, after unscaling and before clipping, every log_every_n_steps.
class GradientNormMonitor : public Callback {
 public:
  /// Throws UsageError if norm_type is not positive.
  explicit GradientNormMonitor(GradientNormMonitorOptions options = {});
  void on_before_optimizer_step(RunContext& run) override;

 private:
  GradientNormMonitorOptions options_;
};

/// Options of ThroughputMonitor.
struct ThroughputMonitorOptions {
  std::function<std::int64_t(const Batch&)> batch_size_fn{};  ///< samples of a batch; Batch::size if empty
  std::function<std::int64_t(const Batch&)> length_fn{};      ///< items of a batch, such as tokens
  std::int64_t window = 100;                                  ///< number of batches over which rates are averaged
  std::function<double(const Batch&)> flops_fn{};             ///< floating-point operations of a training batch
  double available_flops = 0;                                 ///< of the device, per second; with flops_fn yields mfu
  std::function<double()> clock{};                            ///< monotonic seconds; the steady clock if empty
};

/// Logs every log_every_n_steps: train/time (seconds of training so far), train/batches, train/samples, train/lengths,
/// and over the window train/device/batches_per_sec, samples_per_sec, items_per_sec, flops_per_sec and mfu. The clock
/// is read when the host has queued the step; averaged over a window this also holds for a CUDA device.
class ThroughputMonitor : public Callback {
 public:
  /// Throws UsageError for a window below 1 and for negative available_flops.
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
  std::deque<Sums> marks_;  // totals after each batch of the window, and those before it
  double last_ = 0;         // time at which training last resumed
  double paused_ = 0;
};

/// Options of DeviceStatsMonitor.
struct DeviceStatsMonitorOptions {
  std::optional<bool> cpu_stats{};         ///< by default true if training runs on the CPU
  std::vector<std::string> filter_keys{};  ///< log only names that contain one of these; all if empty
};

/// Logs every log_every_n_steps, at the start and at the end of a batch, as DeviceStatsMonitor.on_train_batch_start/KEY
/// and DeviceStatsMonitor.on_train_batch_end/KEY. Keys: allocated_bytes and peak_allocated_bytes of the device's
/// allocator; and for the machine (from /proc) cpu_percent since the previous sample, cpu_vm_percent, cpu_swap_percent,
/// process_rss_bytes.
class DeviceStatsMonitor : public Callback {
 public:
  explicit DeviceStatsMonitor(DeviceStatsMonitorOptions options = {}) : options_(std::move(options)) {}
  void on_train_batch_start(RunContext& run, const Batch& batch, int index) override;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& batch, int index) override;

 private:
  void log(RunContext& run, const char* hook);
  DeviceStatsMonitorOptions options_;
  double busy_ = 0, all_ = 0;  // ticks of all cores at the previous sample
};

}  // namespace levin
