#pragma once
// Measures every operation inside the steps and compares it with the machine's limits.

#include <levin/core/device.h>
#include <levin/core/dtype.h>
#include <levin/core/owned_ptr.h>
#include <levin/trainer/profilers/profiler.h>

#include <compare>

namespace levin {

/// Peak rates of a device (the roofline).
struct Roof {
  double bytes = 0;  ///< per second, read and written
  double flops = 0;  ///< per second
};

/// Measures the peak rates (in about 0.2 s) with a copy of 64 MiB and a square matrix product in `dtype`, taking the
/// best of a few runs.
Roof measure_roof(Device device, DType dtype);

/// Options of AdvancedProfiler.
struct AdvancedProfilerOptions {
  SimpleProfilerOptions table{};  ///< where the report goes
  std::size_t rows = 30;          ///< number of operations in the report, the most expensive first
  std::function<Roof(Device, DType)> roof = measure_roof;  ///< returns the limits of a device and type
};

/// Adds a table of operations to SimpleProfiler's: calls, time, bytes, flops and the fraction of the roofline, i.e. the
/// minimum time for the operation's contract (its bytes at the copy's rate, its flops at the matrix product's) over the
/// measured time. Operations that run from the cache can exceed 100 %. On a device every operation is synchronized to
/// measure its own time, so such a run is slower.
class AdvancedProfiler : public SimpleProfiler {
 public:
  /// The limits are measured when the report is made.
  explicit AdvancedProfiler(AdvancedProfilerOptions options = {});
  ~AdvancedProfiler() override;

  /// Sums over all calls of an operation: their number (calls), their time (seconds), and the `bytes` and `flops` of
  /// their contracts.
  struct Operation {
    std::int64_t calls = 0;
    double seconds = 0, bytes = 0, flops = 0;
    /// Fraction of the roofline, where 1 is the peak.
    double share(const Roof& roof) const;
  };
  /// Names an operation by its `kernel`, and the dtype and kind of device that it computed with.
  struct Key {
    std::string kernel;
    DType dtype;
    DeviceType device;
    friend bool operator==(const Key& a, const Key& b);
    /// Orders by kernel, dtype and device.
    friend std::strong_ordering operator<=>(const Key& a, const Key& b);
  };
  /// Returns the sums of the current or last run; thread-safe.
  std::map<Key, Operation> operations() const;

  void setup(Stage stage, const std::string& root) override;
  std::string summary() const override;
  void teardown(Stage stage) override;

 private:
  struct Gathered;
  struct Watch;
  AdvancedProfilerOptions options_;
  OwnedPtr<Gathered> gathered_;
  OwnedPtr<Watch> watch_;
};

/// Options of TraceProfiler.
struct TraceProfilerOptions {
  std::string filename = "trace.json";      ///< below the run's root
  std::size_t max_events = 1'000'000;       ///< later events are dropped and counted
  bool operations = true;                   ///< record kernels in addition to actions
  ProfilerClock clock = monotonic_seconds;  ///< source of the times
};

/// Writes a time line in Chrome's trace format, for chrome://tracing or https://ui.perfetto.dev.
class TraceProfiler : public Profiler {
 public:
  /// The file is written when the run is over.
  explicit TraceProfiler(TraceProfilerOptions options = {});
  ~TraceProfiler() override;

  void setup(Stage stage, const std::string& root) override;
  void start(const std::string& action, Phase phase) override;
  void stop(const std::string& action) override;
  void teardown(Stage stage) override;
  std::string summary() const override;

 private:
  struct Data;
  OwnedPtr<Data> data_;
};

}  // namespace levin
