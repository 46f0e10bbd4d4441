#pragma once
// What configure_optimizers gives back: an optimizer, with a scheduler if wanted.

#include <levin/optim/optimizer.h>
#include <levin/optim/scheduler.h>

#include <concepts>
#include <memory>
#include <optional>
#include <string>

namespace levin {

/// How often a scheduler steps.
enum class Interval { epoch, step };

struct SchedulerConfig {
  Interval interval = Interval::epoch;
  std::int64_t frequency = 1;  ///< every so many epochs or steps
  std::string monitor{};       ///< the logged value that a plateau scheduler watches
  bool strict = true;          ///< a monitor that was never logged is an error
};

/// Made from an optimizer alone, or followed by schedule():
///
///     return Optimizers(optim::AdamW(net.parameters(), {.lr = 1e-3}))
///         .schedule([](auto& opt) { return optim::OneCycleLR(opt, {.max_lr = 4e-3, .total_steps = 1000}); },
///                   {.interval = Interval::step});
class Optimizers {
 public:
  Optimizers() = default;
  template <class O>
    requires std::derived_from<O, optim::Optimizer>
  Optimizers(O optimizer) : optimizer_(std::make_unique<O>(std::move(optimizer))) {}  // NOLINT: implicit
  Optimizers(std::unique_ptr<optim::Optimizer> optimizer) : optimizer_(std::move(optimizer)) {}  // NOLINT

  template <class F>
  Optimizers&& schedule(F make, SchedulerConfig config = {}) && {
    using S = decltype(make(*optimizer_));
    if constexpr (std::same_as<S, optim::ReduceLROnPlateau>) plateau_ = std::make_unique<S>(make(*optimizer_));
    else scheduler_ = std::make_unique<S>(make(*optimizer_));
    config_ = std::move(config);
    check();
    return std::move(*this);
  }

  bool empty() const { return !optimizer_; }
  optim::Optimizer& optimizer() const { return *optimizer_; }
  const SchedulerConfig& config() const { return config_; }
  bool has_scheduler() const { return scheduler_ || plateau_; }
  /// A scheduler that waits for a metric, and steps apart from the others.
  bool is_plateau() const { return static_cast<bool>(plateau_); }
  /// `metric` is for plateau schedulers.
  void step_scheduler(std::optional<double> metric);
  StateDict scheduler_state() const;
  void load_scheduler_state(const StateDict& state);

 private:
  void check() const;  // of config_

  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Scheduler> scheduler_;
  std::unique_ptr<optim::ReduceLROnPlateau> plateau_;
  SchedulerConfig config_;
};

}  // namespace levin
