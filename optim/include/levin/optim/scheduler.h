#pragma once
// Learning rate schedulers. A scheduler keeps its optimizer's groups alive and works after the optimizer was moved.
// The caller calls step(), once per epoch or once per optimizer step.

#include <levin/optim/optimizer.h>

#include <limits>
#include <optional>

namespace levin::optim {

/// Base class: the learning rate as a function of the number of steps.
///
/// Several schedulers of one optimizer work together, as PyTorch's chainable ones do: the constructor and step()
/// multiply the current rates by the change of this scheduler's own, also where the caller has set them. OneCycleLR and
/// CyclicLR set their rates. Groups that are added to the optimizer later are not scheduled.
class Scheduler {
 public:
  virtual ~Scheduler();
  Scheduler(Scheduler&&) noexcept = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  Scheduler& operator=(Scheduler&&) = delete;

  /// Advances by one step and changes the rates of the groups. Where this scheduler's own rate was 0 before, its new
  /// one replaces the group's.
  virtual void step();
  /// Number of steps so far.
  int64_t last_epoch() const { return last_epoch_; }
  /// Multiplies the base rates; the groups change with the next step. Rates that are options of a scheduler
  /// (OneCycleLR's max_lr) do not change.
  virtual void scale_base_lrs(double factor);
  /// Returns the current learning rates of the groups.
  std::vector<double> get_last_lr() const;

  /// Returns 0-dim tensors: "last_epoch" and the other state of the scheduler.
  virtual StateDict state_dict() const;
  /// Loads the entries of state_dict(); the rates of the groups are part of the optimizer's state. Throws StateError if
  /// an entry is missing, and then changes nothing.
  virtual void load_state_dict(const StateDict& state);

 protected:
  /// The base rates are the groups' initial_lr, or those given.
  explicit Scheduler(Optimizer& optimizer);
  Scheduler(Optimizer& optimizer, std::vector<double> base_lrs);
  /// Returns the rates that the optimizer's groups have now.
  static std::vector<double> current_lrs(const Optimizer& optimizer);
  /// Returns the learning rate of group i after last_epoch() steps.
  virtual double lr(std::size_t i) const = 0;
  /// Writes the scheduler's own rates (and any other scheduled settings) to the groups.
  virtual void apply();
  /// Sets the rates of step 0, times what earlier schedulers have made of the rate. To be called at the end of
  /// constructors.
  void start();
  /// The optimizer's groups, and the base rate of group i.
  std::vector<ParamGroup>& groups() const { return *groups_; }
  double base_lr(std::size_t i) const { return base_lrs_[i]; }
  /// Counts a step without changing the groups.
  void advance() { ++last_epoch_; }
  /// Sets the momentum of every group, which is beta1 for Adam and its kin; require_momentum() checks that there is
  /// one.
  void set_momentum(double momentum) const;
  void require_momentum(const char* scheduler) const;

 private:
  friend class SchedulerList;

  std::shared_ptr<std::vector<ParamGroup>> groups_;
  std::vector<double> base_lrs_;
  int64_t last_epoch_ = 0;
};

/// Multiplies the base rate by factor(step), where `step` counts from 0. The factors are no part of the state.
class LambdaLR : public Scheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor);

 protected:
  double lr(std::size_t i) const override;

 private:
  std::function<double(int64_t)> factor_;
};

/// Multiplies the rate by factor(step) in every step from 1 on. The factors are no part of the state: after loading
/// they are computed anew from step 1.
class MultiplicativeLR : public Scheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t)> factor);

 protected:
  double lr(std::size_t i) const override;

 private:
  std::function<double(int64_t)> factor_;
  // The product of the factors of steps 1 to steps_, so that each factor is computed once.
  mutable double product_ = 1.0;
  mutable int64_t steps_ = 0;
};

/// Options of StepLR: the rate is multiplied by `gamma` every `step_size` steps.
struct StepLROptions {
  int64_t step_size = 1;
  double gamma = 0.1;
};
/// Multiplies the rate by gamma every step_size steps. Throws ValueError for a step_size below 1.
class StepLR : public Scheduler {
 public:
  using Options = StepLROptions;
  StepLR(Optimizer& optimizer, const Options& options);
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1) : StepLR(optimizer, Options{step_size, gamma}) {}

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

/// Options of MultiStepLR: the rate is multiplied by `gamma` when the number of steps reaches one of `milestones`.
struct MultiStepLROptions {
  std::vector<int64_t> milestones{};
  double gamma = 0.1;
};
/// Multiplies the rate by gamma at each of the milestones. Throws ValueError if they are not in ascending order.
class MultiStepLR : public Scheduler {
 public:
  using Options = MultiStepLROptions;
  MultiStepLR(Optimizer& optimizer, const Options& options);
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1)
      : MultiStepLR(optimizer, Options{std::move(milestones), gamma}) {}

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

/// Multiplies the rate by gamma in every step: base rate * gamma^step.
class ExponentialLR : public Scheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  double lr(std::size_t i) const override;

 private:
  double gamma_;
};

/// Options of ConstantLR: `factor`, from 0 to 1, of the base rate before step `total_iters`.
struct ConstantLROptions {
  double factor = 1.0 / 3.0;
  int64_t total_iters = 5;
};
/// Multiplies the base rate by factor during the first total_iters steps. Throws ValueError for a factor outside
/// [0, 1].
class ConstantLR : public Scheduler {
 public:
  using Options = ConstantLROptions;
  explicit ConstantLR(Optimizer& optimizer, const Options& options = {});

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

/// Options of PolynomialLR: the number of steps until the rate is 0 (`total_iters`), and the exponent (`power`).
struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1.0;
};
/// Lowers the rate to 0 in total_iters steps: base rate * (1 - min(step, total_iters) / total_iters)^power. Throws
/// ValueError for total_iters below 1.
class PolynomialLR : public Scheduler {
 public:
  using Options = PolynomialLROptions;
  explicit PolynomialLR(Optimizer& optimizer, const Options& options = {});

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

/// Anneals from the base rate to eta_min along half a cosine of t_max steps, and back (Loshchilov & Hutter 2017):
/// eta_min + (base rate - eta_min) * (1 + cos(pi * step / t_max)) / 2. Throws ValueError for t_max below 1.
class CosineAnnealingLR : public Scheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0.0);

 protected:
  double lr(std::size_t i) const override;

 private:
  int64_t t_max_;
  double eta_min_;
};

/// Options of LinearLR: the factors of the base rate at step 0 (`start_factor`, above 0 and at most 1) and from step
/// `total_iters` on (`end_factor`, from 0 to 1).
struct LinearLROptions {
  double start_factor = 1.0 / 3.0;
  double end_factor = 1.0;
  int64_t total_iters = 5;
};
/// Changes the rate linearly from start_factor to end_factor times the base rate in total_iters steps. Throws
/// ValueError for factors out of range and for total_iters below 1.
class LinearLR : public Scheduler {
 public:
  using Options = LinearLROptions;
  explicit LinearLR(Optimizer& optimizer, const Options& options = {});

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

/// Options of CosineAnnealingWarmRestarts.
struct CosineAnnealingWarmRestartsOptions {
  int64_t t_0 = 10;      ///< steps of the first period; 1 or more
  int64_t t_mult = 1;    ///< each period is this many times as long as the one before
  double eta_min = 0.0;  ///< lowest rate, at the end of each period
};
/// Anneals from the base rate to eta_min along half a cosine, and starts again (SGDR, Loshchilov & Hutter 2017). Throws
/// ValueError for t_0 or t_mult below 1.
class CosineAnnealingWarmRestarts : public Scheduler {
 public:
  using Options = CosineAnnealingWarmRestartsOptions;
  CosineAnnealingWarmRestarts(Optimizer& optimizer, const Options& options);

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

/// The amplitude of CyclicLR: constant, halved in each cycle, or multiplied by gamma in each step.
enum class CyclicMode { triangular, triangular2, exp_range };

/// Options of CyclicLR, with PyTorch's defaults where PyTorch has one.
struct CyclicLROptions {
  double base_lr = 1e-3;                     ///< rate at the start of each cycle, of all groups
  double max_lr = 1e-2;                      ///< rate at the top of a cycle of full amplitude
  int64_t step_size_up = 2000;               ///< steps from base_lr to max_lr; 1 or more
  std::optional<int64_t> step_size_down{};   ///< steps from max_lr to base_lr; step_size_up if not given
  CyclicMode mode = CyclicMode::triangular;  ///< how the amplitude changes
  double gamma = 1.0;                        ///< exp_range multiplies the amplitude by gamma^step
  bool cycle_momentum = true;                ///< cycles momentum, or beta1 for Adam
  double base_momentum = 0.8;                ///< momentum at the top of a cycle
  double max_momentum = 0.9;                 ///< momentum at the start of a cycle
};
/// Moves the rate between base_lr and max_lr and back, while momentum moves in the opposite direction (Smith 2017). The
/// amplitude stays (triangular), halves with each cycle (triangular2) or decays with each step (exp_range). Throws
/// ValueError for step sizes below 1, and with cycle_momentum for an optimizer without momentum.
class CyclicLR : public Scheduler {
 public:
  using Options = CyclicLROptions;
  CyclicLR(Optimizer& optimizer, const Options& options);
  void step() override;

 protected:
  double lr(std::size_t i) const override;
  void apply() override;

 private:
  /// Returns the part of the amplitude that this step adds, from 0 to 1.
  double height() const;

  Options options_;
};

/// The shape of OneCycleLR's phases: half a cosine, or a straight line.
enum class Anneal { cos, linear };

/// Options of OneCycleLR, with PyTorch's defaults where PyTorch has one.
struct OneCycleOptions {
  double max_lr = 0.01;                  ///< highest rate, of all groups
  int64_t total_steps = 0;               ///< steps of the whole run; 0: epochs * steps_per_epoch
  int64_t epochs = 0;                    ///< epochs of the whole run, if total_steps is 0
  int64_t steps_per_epoch = 0;           ///< steps of an epoch, if total_steps is 0
  double pct_start = 0.3;                ///< fraction of the steps in which the rate rises, from 0 to 1
  Anneal anneal_strategy = Anneal::cos;  ///< shape of the phases
  bool cycle_momentum = true;            ///< cycles momentum, or beta1 for Adam
  double base_momentum = 0.85;           ///< momentum where the rate is max_lr
  double max_momentum = 0.95;            ///< momentum at both ends
  double div_factor = 25.0;              ///< the initial rate is max_lr / div_factor
  double final_div_factor = 1e4;         ///< the final rate is the initial rate / final_div_factor
  bool three_phase = false;              ///< first falls to the initial rate as fast as it rose, then to the final rate
};
/// Raises the rate to max_lr and then lowers it to almost zero, while momentum moves in the opposite direction (Smith &
/// Topin 2018). The constructor throws ValueError for a number of steps below 1, pct_start outside [0, 1] and, with
/// cycle_momentum, an optimizer without momentum; step() throws it beyond total_steps.
class OneCycleLR : public Scheduler {
 public:
  using Options = OneCycleOptions;
  OneCycleLR(Optimizer& optimizer, const Options& options);
  void step() override;

 protected:
  double lr(std::size_t i) const override;
  void apply() override;

 private:
  struct Phase {
    double end, lr_from, lr_to, momentum_from, momentum_to;
  };
  /// Returns the value at the current step, interpolated from `from` to `to` of the current phase.
  double at(double Phase::*from, double Phase::*to) const;

  Options options_;
  std::vector<Phase> phases_;
};

/// The direction in which a metric improves.
enum class PlateauMode { min, max };
/// An improvement counts if it is more than `threshold` times the best value (rel), or more than `threshold` (abs).
enum class ThresholdMode { rel, abs };

/// Options of ReduceLROnPlateau, with PyTorch's defaults; min_lr is one number for all groups.
struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::min;                ///< min: lower is better
  double factor = 0.1;                                ///< factor of the rate; below 1
  int64_t patience = 10;                              ///< steps without improvement that are tolerated
  double threshold = 1e-4;                            ///< least improvement that counts
  ThresholdMode threshold_mode = ThresholdMode::rel;  ///< unit of threshold
  int64_t cooldown = 0;                               ///< steps after a reduction in which no bad step is counted
  double min_lr = 0.0;                                ///< lower bound of the rates
  double eps = 1e-8;                                  ///< smaller changes of the rate are ignored
};
/// Multiplies the rates by factor when a metric has not improved for more than `patience` steps. Throws ValueError for
/// a factor of 1 or more.
class ReduceLROnPlateau {
 public:
  using Options = ReduceLROnPlateauOptions;
  explicit ReduceLROnPlateau(Optimizer& optimizer, const Options& options = {});

  /// Looks at the metric of one more step, and lowers the rates if it is time. NaN counts as no improvement.
  void step(double metric);
  /// Returns the current learning rates of the groups.
  std::vector<double> get_last_lr() const;
  /// Returns "best", "num_bad_epochs", "cooldown_counter" and "last_epoch" as 0-dim f64, by PyTorch's names.
  StateDict state_dict() const;
  /// Loads the entries of state_dict(). Throws StateError if one is missing, and then changes nothing.
  void load_state_dict(const StateDict& state);

 private:
  bool is_better(double metric) const;
  void reduce();

  std::shared_ptr<std::vector<ParamGroup>> groups_;
  Options options_;
  double best_;
  int64_t bad_epochs_ = 0;
  int64_t cooldown_left_ = 0;
  int64_t last_epoch_ = 0;
};

}  // namespace levin::optim
