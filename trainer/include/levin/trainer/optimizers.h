#pragma once
// Result of configure_optimizers: optimizers, each with any number of schedulers.

#include <levin/optim/optimizer.h>
#include <levin/optim/scheduler.h>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace levin {

/// How often a scheduler is stepped.
enum class Interval { epoch, step };

/// When a scheduler is stepped, and by which metric.
struct SchedulerConfig {
  Interval interval = Interval::epoch;  ///< whether epochs or optimizer steps count
  std::int64_t frequency = 1;           ///< step every this many epochs or steps
  std::string monitor{};                ///< logged value that a plateau scheduler monitors
  bool strict = true;                   ///< throw if the monitor was never logged
  std::string name{};  ///< name under which LearningRateMonitor logs the rate, in place of lr-<optimizer>
};

/// Constructed from an optimizer, optionally followed by schedule():
///
///     return Optimizers(optim::AdamW(net.parameters(), {.lr = 1e-3}))
///         .schedule([](auto& opt) { return optim::OneCycleLR(opt, {.max_lr = 4e-3, .total_steps = 1000}); },
///                   {.interval = Interval::step});
///
/// Every further schedule() adds a scheduler with an interval of its own, such as a warm-up by the step beside a
/// ReduceLROnPlateau by the epoch. Each multiplies the rate by the change of its own, as PyTorch's chainable schedulers
/// do.
///
/// Further optimizers are added one by one; schedule() applies to the last one. Several require manual optimization:
///
///     return Optimizers(optim::Adam(g.parameters())).add(optim::Adam(d.parameters()));
class Optimizers {
 public:
  /// Holds no optimizer, or takes one.
  Optimizers();
  template <class O>
  requires std::derived_from<O, optim::Optimizer> Optimizers(O optimizer)  // NOLINT: implicit
      : Optimizers() {
    append(new O(std::move(optimizer)));
  }
  Optimizers(std::unique_ptr<optim::Optimizer> optimizer);  // NOLINT
  ~Optimizers();
  Optimizers(Optimizers&&) noexcept;
  Optimizers& operator=(Optimizers&&) noexcept;

  /// Adds an optimizer.
  template <class O>
  requires std::derived_from<O, optim::Optimizer> Optimizers && add(O optimizer) && {
    append(new O(std::move(optimizer)));
    return std::move(*this);
  }
  /// Adds the scheduler that `make` returns for the last optimizer. Throws UsageError for an invalid configuration.
  template <class F>
  Optimizers&& schedule(F make, SchedulerConfig config = {}) && {
    add_scheduler(size() - 1, std::move(make), std::move(config));
    return std::move(*this);
  }
  /// Adds a scheduler to optimizer i. Throws UsageError for an invalid configuration.
  template <class F>
  void add_scheduler(std::size_t i, F make, SchedulerConfig config = {}) {
    take_scheduler(i, new auto(make(optimizer(i))), std::move(config));
  }
  /// Replaces all schedulers of optimizer i by one.
  template <class F>
  void set_scheduler(std::size_t i, F make, SchedulerConfig config = {}) {
    drop_schedulers(i);
    add_scheduler(i, std::move(make), std::move(config));
  }

  /// Number of optimizers, and optimizer i; std::out_of_range if there is none.
  bool empty() const { return size() == 0; }
  std::size_t size() const;
  optim::Optimizer& optimizer(std::size_t i = 0) const;

  /// Number of schedulers of all optimizers.
  std::size_t num_schedulers() const;
  /// The configuration of scheduler k. Schedulers are ordered by optimizer, and those of one as they were added.
  const SchedulerConfig& config(std::size_t k = 0) const;
  /// Index of the optimizer whose rates scheduler k changes.
  std::size_t optimizer_of(std::size_t k) const;
  /// True for a plateau scheduler, which waits for a metric and is stepped separately.
  bool is_plateau(std::size_t k = 0) const;
  /// Null if it is a plateau scheduler.
  optim::Scheduler* scheduler(std::size_t k = 0) const;
  /// Steps scheduler k. `metric` is for plateau schedulers; throws UsageError if one gets none.
  void step_scheduler(std::optional<double> metric = {}, std::size_t k = 0);

  /// State of all optimizers: the first under plain names, the others under "<i>.".
  StateDict optimizer_state() const;
  /// Loads such a state. Throws StateError as Optimizer::load_state_dict does.
  void load_optimizer_state(const StateDict& state);
  /// Combines separate optimizer states, one per optimizer, into one, and splits it again.
  static StateDict joined(const std::vector<StateDict>& states);
  std::vector<StateDict> parts(const StateDict& state) const;
  /// Prefix of the names of optimizer i in that state.
  static std::string prefix(std::size_t i);
  /// State of all schedulers, under the prefixes of their optimizers; the further ones of an optimizer under
  /// "scheduler<n>.", from 1.
  StateDict scheduler_state() const;
  /// Loads such a state. Throws StateError if the state of a scheduler is missing.
  void load_scheduler_state(const StateDict& state);

 private:
  struct Scheduled;
  void append(optim::Optimizer* owned);
  void drop_schedulers(std::size_t i);
  /// Number of the schedulers of the same optimizer before scheduler k.
  std::size_t nth(std::size_t k) const;
  void insert(Scheduled scheduled);
  void take_scheduler(std::size_t i, optim::Scheduler* owned, SchedulerConfig config);
  void take_scheduler(std::size_t i, optim::ReduceLROnPlateau* owned, SchedulerConfig config);

  std::vector<std::unique_ptr<optim::Optimizer>> optimizers_;
  std::vector<Scheduled> schedulers_;
};

}  // namespace levin
