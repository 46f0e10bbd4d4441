#pragma once
// Where the time goes inside the steps: every operation, beside what the machine could do.

#include <levin/core/device.h>
#include <levin/core/dtype.h>
#include <levin/core/owned_ptr.h>
#include <levin/trainer/profiler.h>

#include <compare>

namespace levin {

/// What a device can do at best.
struct Roof {
  double bytes = 0;  ///< a second, read and written
  double flops = 0;  ///< a second
};

/// Measured here and now (about 0.2 s) with a copy of 64 MiB and with a square matrix product in `dtype`, the better of
/// a few.
Roof measure_roof(Device device, DType dtype);

struct AdvancedProfilerOptions {
  SimpleProfilerOptions table{};
  std::size_t rows = 30;  ///< operations that the report shows, the most expensive first
  std::function<Roof(Device, DType)> roof = measure_roof;
};

/// SimpleProfiler's tables and one of operations: calls, time, bytes, flops and the share of the roofline, which is the
/// time that the operation's contract needs at least (its bytes at the copy's rate, its flops at the matrix product's)
/// over the time it took. What runs from the cache can pass 100 %. On a device every operation is waited for, so that
/// each gets its own time: such a run is slower than one without.
class AdvancedProfiler : public SimpleProfiler {
 public:
  explicit AdvancedProfiler(AdvancedProfilerOptions options = {});
  ~AdvancedProfiler() override;

  struct Operation {
    std::int64_t calls = 0;
    double seconds = 0, bytes = 0, flops = 0;
    /// From 0 to 1 where the roof is one.
    double share(const Roof& roof) const;
  };
  struct Key {
    std::string kernel;
    DType dtype;
    DeviceType device;
    friend bool operator==(const Key& a, const Key& b);
    friend std::strong_ordering operator<=>(const Key& a, const Key& b);
  };
  std::map<Key, Operation> operations() const;

  void setup(Stage stage, const std::filesystem::path& root) override;
  std::string summary() const override;
  void teardown(Stage stage) override;

 private:
  struct Gathered;
  struct Watch;
  AdvancedProfilerOptions options_;
  OwnedPtr<Gathered> gathered_;
  OwnedPtr<Watch> watch_;
};

struct TraceProfilerOptions {
  std::string filename = "trace.json";  ///< below the run's root
  std::size_t max_events = 1'000'000;   ///< later ones are left out, and counted
  bool operations = true;               ///< kernels too, not only actions
  ProfilerClock clock = profiler_now;
};

/// A time line in Chrome's trace format, for chrome://tracing or https://ui.perfetto.dev.
class TraceProfiler : public Profiler {
 public:
  explicit TraceProfiler(TraceProfilerOptions options = {});
  ~TraceProfiler() override;

  void setup(Stage stage, const std::filesystem::path& root) override;
  void start(const std::string& action, Phase phase) override;
  void stop(const std::string& action) override;
  void teardown(Stage stage) override;
  std::string summary() const override;

 private:
  struct Data;
  OwnedPtr<Data> data_;
};

}  // namespace levin
