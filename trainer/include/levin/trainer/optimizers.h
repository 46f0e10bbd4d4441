#pragma once
// What configure_optimizers gives back: optimizers, each with a scheduler if wanted.

#include <levin/optim/optimizer.h>
#include <levin/optim/scheduler.h>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace levin {

/// How often a scheduler steps.
enum class Interval { epoch, step };

struct SchedulerConfig {
  Interval interval = Interval::epoch;
  std::int64_t frequency = 1;  ///< every so many epochs or steps
  std::string monitor{};       ///< the logged value that a plateau scheduler watches
  bool strict = true;          ///< a monitor that was never logged is an error
  std::string name{};          ///< under which LearningRateMonitor logs the rate, in place of lr-<optimizer>
};

/// Made from an optimizer alone, or followed by schedule():
///
///     return Optimizers(optim::AdamW(net.parameters(), {.lr = 1e-3}))
///         .schedule([](auto& opt) { return optim::OneCycleLR(opt, {.max_lr = 4e-3, .total_steps = 1000}); },
///                   {.interval = Interval::step});
///
/// Several are added one by one; schedule() is for the last of them. They need manual optimization:
///
///     return Optimizers(optim::Adam(g.parameters())).add(optim::Adam(d.parameters()));
class Optimizers {
 public:
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

  template <class O>
  requires std::derived_from<O, optim::Optimizer> Optimizers && add(O optimizer) && {
    append(new O(std::move(optimizer)));
    return std::move(*this);
  }
  template <class F>
  Optimizers&& schedule(F make, SchedulerConfig config = {}) && {
    set_scheduler(size() - 1, std::move(make), std::move(config));
    return std::move(*this);
  }
  /// Replaces the scheduler of optimizer i. Throws UsageError for a configuration that makes no sense.
  template <class F>
  void set_scheduler(std::size_t i, F make, SchedulerConfig config = {}) {
    optim::Optimizer& stepped = without_scheduler(i);
    take_scheduler(i, new auto(make(stepped)), std::move(config));
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const;
  optim::Optimizer& optimizer(std::size_t i = 0) const;
  const SchedulerConfig& config(std::size_t i = 0) const;
  bool has_scheduler(std::size_t i = 0) const;
  /// A scheduler that waits for a metric, and steps apart from the others.
  bool is_plateau(std::size_t i = 0) const;
  /// Null where there is none, or one that waits for a metric.
  optim::Scheduler* scheduler(std::size_t i = 0) const;
  /// `metric` is for plateau schedulers; UsageError where one gets none.
  void step_scheduler(std::optional<double> metric = {}, std::size_t i = 0);

  /// Of all optimizers: entries of the first by their plain names, of the others under "<i>.".
  StateDict optimizer_state() const;
  void load_optimizer_state(const StateDict& state);
  /// The same of states that were taken from the optimizers elsewhere, one each, and back.
  static StateDict joined(const std::vector<StateDict>& states);
  std::vector<StateDict> parts(const StateDict& state) const;
  /// What stands before the names of optimizer i in there.
  static std::string prefix(std::size_t i);
  StateDict scheduler_state() const;
  void load_scheduler_state(const StateDict& state);

 private:
  struct Entry;
  static void check(const Entry& entry);
  void append(optim::Optimizer* owned);
  /// Drops the scheduler of optimizer i, which comes back.
  optim::Optimizer& without_scheduler(std::size_t i);
  void take_scheduler(std::size_t i, optim::Scheduler* owned, SchedulerConfig config);
  void take_scheduler(std::size_t i, optim::ReduceLROnPlateau* owned, SchedulerConfig config);

  std::vector<Entry> entries_;
};

}  // namespace levin
