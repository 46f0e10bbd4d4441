#pragma once
// Measures where the time of a run is spent. Without a profiler a scope costs one comparison.

#include <levin/core/owned_ptr.h>
#include <levin/kernels/range.h>
#include <levin/trainer/config/config.h>
#include <levin/trainer/train_state.h>

#include <cstdio>
#include <functional>
#include <map>

namespace levin {

/// Category of an action. The phases' own times add up to the whole run.
enum class Phase { loop, data, transfer, forward, backward, optimizer, evaluation, checkpoint, logging, hooks };
/// Returns the name: "forward".
const char* name_of(Phase phase);

/// Receives the start and end of actions, which nest. Handles one run at a time, in the thread of the run.
class Profiler {
 public:
  virtual ~Profiler() = default;
  /// Called when a run begins; the profiler writes its files below `root`.
  virtual void setup(Stage, const std::string& /*root*/) {}
  /// Names are Lightning's, adapted to C++: "[LevinModule]Net.training_step", "run_training_batch".
  virtual void start(const std::string& action, Phase phase) = 0;
  /// Ends the innermost action.
  virtual void stop(const std::string& action) = 0;
  /// Returns the current results as text.
  virtual std::string summary() const { return {}; }
  /// Called when the run is over, even if it failed.
  virtual void teardown(Stage) {}
};

/// Measures nothing.
class PassThroughProfiler : public Profiler {
 public:
  void start(const std::string&, Phase) override {}
  void stop(const std::string&) override {}
};

using ProfilerClock = std::function<double()>;  ///< seconds from an arbitrary origin

/// Options of SimpleProfiler.
struct SimpleProfilerOptions {
  std::string filename{};                   ///< report file below the run's root; if empty, the report goes to `out`
  std::FILE* out = stdout;                  ///< receives the report if there is no file; must stay open
  ProfilerClock clock = monotonic_seconds;  ///< source of the times
};

/// Prints a table of every hook and phase: calls, mean, total, share of the run, and the share without nested actions;
/// then the phases, which add up to the run's time.
class SimpleProfiler : public Profiler {
 public:
  /// Each run starts with an empty table.
  explicit SimpleProfiler(SimpleProfilerOptions options = {});

  /// The times of one action.
  struct Record {
    Phase phase = Phase::loop;  ///< category of the action
    std::int64_t calls = 0;     ///< number of times that it ended
    double total = 0;           ///< seconds
    double own = 0;             ///< without nested actions
    /// Seconds of a call.
    double mean() const { return calls > 0 ? total / static_cast<double>(calls) : 0; }
  };
  /// The times by the names of actions.
  const std::map<std::string, Record>& records() const { return records_; }
  /// Own times by phase; their sum is wall().
  std::map<Phase, double> phases() const;
  /// Seconds in outermost actions.
  double wall() const { return wall_; }

  void setup(Stage stage, const std::string& root) override;
  void start(const std::string& action, Phase phase) override;
  void stop(const std::string& action) override;
  std::string summary() const override;
  void teardown(Stage stage) override;

 protected:
  /// Seconds of the clock, and the run's root.
  double now() const { return options_.clock(); }
  const std::string& root() const { return root_; }
  /// Called for every finished action; derived classes may override it.
  virtual void finished(const std::string& /*action*/, Phase, double /*start*/, double /*seconds*/) {}

 private:
  struct Open {
    std::map<std::string, Record>::iterator record;
    Phase phase;
    double start = 0, inside = 0;
  };
  void close();

  SimpleProfilerOptions options_;
  std::string root_;
  Stage stage_ = Stage::fit;
  std::map<std::string, Record> records_;
  std::map<Phase, double> phases_;
  double wall_ = 0;
  std::vector<Open> open_;
};

/// Sinks of the ranges; NVTX by default.
struct NvtxProfilerOptions {
  std::function<void(const char*)> push = kernels::push_range;  ///< begins a range of this thread
  std::function<void()> pop = kernels::pop_range;               ///< ends the innermost one
};

/// Shows actions as ranges on the time line of NVIDIA's profilers (nsys), together with the kernels' own ranges. Does
/// nothing without a device or such a profiler.
class NvtxProfiler : public Profiler {
 public:
  explicit NvtxProfiler(NvtxProfilerOptions options = {}) : options_(std::move(options)) {}
  void start(const std::string& action, Phase phase) override;
  void stop(const std::string& action) override;

 private:
  NvtxProfilerOptions options_;
};

/// Creates the profiler of a name or returns the given object, null for ""; throws UsageError that lists the known
/// names.
std::shared_ptr<Profiler> make_profiler(const ProfilerChoice& choice);

namespace detail {
extern constinit thread_local Profiler* current_profiler;
}

/// Profiler of the current thread's run, or null.
inline Profiler* current_profiler() { return detail::current_profiler; }

/// Profiles an action until the end of the scope; programs may define their own:
///
///     const ProfileScope scope("augmentation", Phase::data);
class ProfileScope {
 public:
  /// Begins the action if this thread's run has a profiler; otherwise nothing is measured.
  explicit ProfileScope(const char* action, Phase phase = Phase::loop) : profiler_(current_profiler()) {
    if (profiler_) begin(action, phase);
  }
  /// `name` is called only if a profiler is active.
  template <std::invocable F>
  explicit ProfileScope(const F& name, Phase phase = Phase::loop) : profiler_(current_profiler()) {
    if (profiler_) begin(name(), phase);
  }
  ~ProfileScope() {
    if (profiler_) profiler_->stop(action_);
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  void begin(std::string action, Phase phase);

  Profiler* profiler_;
  std::string action_;
};

/// Sets this thread's profiler and calls its setup and teardown; null has no effect. The destructor restores the
/// previous one.
class ProfilerGuard {
 public:
  /// The arguments are those of Profiler::setup. An exception of teardown becomes a warning.
  ProfilerGuard(Profiler* profiler, Stage stage, const std::string& root);
  ~ProfilerGuard();
  ProfilerGuard(const ProfilerGuard&) = delete;
  ProfilerGuard& operator=(const ProfilerGuard&) = delete;

 private:
  Profiler* profiler_;
  Profiler* former_;
  Stage stage_;
};

}  // namespace levin
