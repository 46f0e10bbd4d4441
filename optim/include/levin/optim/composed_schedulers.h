#pragma once
// Schedulers that are made of others.

#include <levin/optim/scheduler.h>

#include <concepts>
#include <memory>

namespace levin::optim {

/// A scheduler that takes ownership of others of the same optimizer; its state contains theirs as
/// "schedulers.<k>.<name>".
class SchedulerList : public Scheduler {
 public:
  void scale_base_lrs(double factor) override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 protected:
  /// Moves the schedulers into the list.
  template <class... S>
  requires((std::derived_from<S, Scheduler> && ...) && sizeof...(S) > 0) explicit SchedulerList(Optimizer& optimizer,
                                                                                                S&&... schedulers)
      : Scheduler(optimizer) {
    (schedulers_.push_back(std::make_unique<S>(std::move(schedulers))), ...);
  }
  /// Number of schedulers; the k-th of them, and its own rate for a group at its current step.
  std::size_t count() const { return schedulers_.size(); }
  Scheduler& scheduler(std::size_t k) const { return *schedulers_[k]; }
  double lr_of(std::size_t k, std::size_t group) const { return schedulers_[k]->lr(group); }
  /// Sets the groups to the rates of scheduler k at its first step.
  void restart(std::size_t k) const;

 private:
  std::vector<std::unique_ptr<Scheduler>> schedulers_;
};

/// Runs one scheduler after the other: scheduler k + 1 starts, at its own step 0, when milestones[k] steps are done.
///
///   optim::SequentialLR(opt, {5}, optim::LinearLR(opt, {.start_factor = 0.1}), optim::CosineAnnealingLR(opt, 95));
///
/// Takes ownership of `schedulers`, which must be given as temporaries or by std::move. Throws ValueError unless there
/// is one milestone less than schedulers, in order.
class SequentialLR : public SchedulerList {
 public:
  template <class... S>
  SequentialLR(Optimizer& optimizer, std::vector<int64_t> milestones, S&&... schedulers)
      : SchedulerList(optimizer, std::forward<S>(schedulers)...), milestones_(std::move(milestones)) {
    start();
  }
  void step() override;

 protected:
  double lr(std::size_t i) const override;

 private:
  void start();
  std::size_t current() const;

  std::vector<int64_t> milestones_;
};

/// Steps several schedulers at once: each multiplies the rate by the change of its own. Takes ownership of
/// `schedulers`, as SequentialLR does.
///
///   optim::ChainedScheduler(opt, optim::ConstantLR(opt, {.factor = 0.1}), optim::ExponentialLR(opt, 0.9));
class ChainedScheduler : public SchedulerList {
 public:
  template <class... S>
  explicit ChainedScheduler(Optimizer& optimizer, S&&... schedulers)
      : SchedulerList(optimizer, std::forward<S>(schedulers)...) {
    start();
  }
  void step() override;

 protected:
  double lr(std::size_t i) const override;

 private:
  void start();
};

}  // namespace levin::optim
