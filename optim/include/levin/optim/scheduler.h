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
/// CyclicLR set their rates.
class Scheduler {
 public:
  virtual ~Scheduler();
  Scheduler(Scheduler&&) noexcept = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  Scheduler& operator=(Scheduler&&) = delete;

  /// A rate of this scheduler's own that was 0 replaces the current one.
  virtual void step();
  int64_t last_epoch() const { return last_epoch_; }
  /// Multiplies the base rates; the groups change with the next step. Rates that are options of a scheduler
  /// (OneCycleLR's max_lr) do not change.
  virtual void scale_base_lrs(double factor);
  /// Returns the current learning rates of the groups.
  std::vector<double> get_last_lr() const;

  /// Returns 0-dim tensors: "last_epoch" and the other state of the scheduler.
  virtual StateDict state_dict() const;
  /// Loads the entries of state_dict(). Throws StateError if one is missing, and then changes nothing.
  virtual void load_state_dict(const StateDict& state);

 protected:
  /// The base rates are the groups' initial_lr, or those given.
  explicit Scheduler(Optimizer& optimizer);
  Scheduler(Optimizer& optimizer, std::vector<double> base_lrs);
  static std::vector<double> current_lrs(const Optimizer& optimizer);
  /// Returns the learning rate of group i after last_epoch() steps.
  virtual double lr(std::size_t i) const = 0;
  /// Writes the scheduler's own rates (and any other scheduled settings) to the groups.
  virtual void apply();
  /// Sets the rates of step 0, times what earlier schedulers have made of the rate. To be called at the end of
  /// constructors.
  void start();
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

/// Multiplies the base rate by factor(step).
class LambdaLR : public Scheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor);

 protected:
  double lr(std::size_t i) const override;

 private:
  std::function<double(int64_t)> factor_;
};

/// Multiplies the rate by factor(step) in every step from 1 on.
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

struct StepLROptions {
  int64_t step_size = 1;
  double gamma = 0.1;
};
/// Multiplies the rate by gamma every step_size steps.
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

struct MultiStepLROptions {
  std::vector<int64_t> milestones{};
  double gamma = 0.1;
};
/// Multiplies the rate by gamma at each milestone.
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

/// Multiplies the rate by gamma in every step.
class ExponentialLR : public Scheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  double lr(std::size_t i) const override;

 private:
  double gamma_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3.0;
  int64_t total_iters = 5;
};
/// Multiplies the base rate by factor during the first total_iters steps.
class ConstantLR : public Scheduler {
 public:
  using Options = ConstantLROptions;
  explicit ConstantLR(Optimizer& optimizer, const Options& options = {});

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1.0;
};
/// Lowers the rate to 0 in total_iters steps: base rate * (1 - step / total_iters)^power.
class PolynomialLR : public Scheduler {
 public:
  using Options = PolynomialLROptions;
  explicit PolynomialLR(Optimizer& optimizer, const Options& options = {});

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

/// Anneals from the base rate to eta_min along half a cosine of t_max steps, and back (Loshchilov & Hutter 2017).
class CosineAnnealingLR : public Scheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0.0);

 protected:
  double lr(std::size_t i) const override;

 private:
  int64_t t_max_;
  double eta_min_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3.0;
  double end_factor = 1.0;
  int64_t total_iters = 5;
};
/// Changes the rate linearly from start_factor to end_factor times the base rate in total_iters steps.
class LinearLR : public Scheduler {
 public:
  using Options = LinearLROptions;
  explicit LinearLR(Optimizer& optimizer, const Options& options = {});

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

struct CosineAnnealingWarmRestartsOptions {
  int64_t t_0 = 10;    ///< steps of the first period
  int64_t t_mult = 1;  ///< each period is this many times as long as the one before
  double eta_min = 0.0;
};
/// Anneals from the base rate to eta_min along half a cosine, and starts again (SGDR, Loshchilov & Hutter 2017).
class CosineAnnealingWarmRestarts : public Scheduler {
 public:
  using Options = CosineAnnealingWarmRestartsOptions;
  CosineAnnealingWarmRestarts(Optimizer& optimizer, const Options& options);

 protected:
  double lr(std::size_t i) const override;

 private:
  Options options_;
};

enum class CyclicMode { triangular, triangular2, exp_range };

struct CyclicLROptions {
  double base_lr = 1e-3;
  double max_lr = 1e-2;
  int64_t step_size_up = 2000;
  std::optional<int64_t> step_size_down{};  ///< step_size_up if not given
  CyclicMode mode = CyclicMode::triangular;
  double gamma = 1.0;          ///< exp_range multiplies the amplitude by gamma^step
  bool cycle_momentum = true;  ///< cycles momentum, or beta1 for Adam
  double base_momentum = 0.8;
  double max_momentum = 0.9;
};
/// Moves the rate between base_lr and max_lr and back, while momentum moves in the opposite direction (Smith 2017). The
/// amplitude stays (triangular), halves with each cycle (triangular2) or decays with each step (exp_range).
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

enum class Anneal { cos, linear };

struct OneCycleOptions {
  double max_lr = 0.01;
  int64_t total_steps = 0;  ///< 0: epochs * steps_per_epoch
  int64_t epochs = 0;
  int64_t steps_per_epoch = 0;
  double pct_start = 0.3;
  Anneal anneal_strategy = Anneal::cos;
  bool cycle_momentum = true;  ///< cycles momentum, or beta1 for Adam
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25.0;       ///< the initial rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the final rate is the initial rate / final_div_factor
  bool three_phase = false;
};
/// Raises the rate to max_lr and then lowers it to almost zero, while momentum moves in the opposite direction (Smith &
/// Topin 2018). Stepping beyond total_steps throws ValueError.
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

enum class PlateauMode { min, max };
enum class ThresholdMode { rel, abs };

struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::min;
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  ThresholdMode threshold_mode = ThresholdMode::rel;
  int64_t cooldown = 0;
  double min_lr = 0.0;
  double eps = 1e-8;  ///< smaller changes of the rate are ignored
};
/// Multiplies the rate by factor when a metric has not improved for more than `patience` steps.
class ReduceLROnPlateau {
 public:
  using Options = ReduceLROnPlateauOptions;
  explicit ReduceLROnPlateau(Optimizer& optimizer, const Options& options = {});

  void step(double metric);
  std::vector<double> get_last_lr() const;
  StateDict state_dict() const;
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
