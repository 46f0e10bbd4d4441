#pragma once
// Learning rate schedulers. A scheduler keeps its optimizer's groups alive and works after the optimizer was moved.
// The caller calls step(), once per epoch or once per optimizer step.

#include <levin/optim/optimizer.h>

#include <limits>

namespace levin::optim {

/// Base class: the learning rate as a function of the number of steps. Construction sets the initial rate.
class Scheduler {
 public:
  virtual ~Scheduler();
  Scheduler(Scheduler&&) noexcept = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  Scheduler& operator=(Scheduler&&) = delete;

  virtual void step();
  /// Steps one of several schedulers of an optimizer, as PyTorch's chainable schedulers do: multiplies the current
  /// rates by the change of this scheduler's own, where step() sets them. A rate that was 0 becomes this scheduler's
  /// own.
  void step_chained();
  int64_t last_epoch() const { return last_epoch_; }
  /// Multiplies the base rates; the groups change with the next step. Rates that are options of a scheduler
  /// (OneCycleLR's max_lr) do not change.
  void scale_base_lrs(double factor);
  /// Returns the current learning rates of the groups.
  std::vector<double> get_last_lr() const;

  /// Returns 0-dim tensors: "last_epoch" and the other state of the scheduler.
  virtual StateDict state_dict() const;
  /// Loads the entries of state_dict(). Throws StateError if one is missing, and then changes nothing.
  virtual void load_state_dict(const StateDict& state);

 protected:
  explicit Scheduler(Optimizer& optimizer);
  /// Returns the learning rate of group i after last_epoch() steps.
  virtual double lr(std::size_t i) const = 0;
  /// Writes the rates (and any other scheduled settings) to the groups. To be called at the end of constructors.
  virtual void apply();
  std::vector<ParamGroup>& groups() const { return *groups_; }
  double base_lr(std::size_t i) const { return base_lrs_[i]; }

 private:
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

enum class Anneal { cos, linear };

struct OneCycleOptions {
  double max_lr = 0.01;
  int64_t total_steps = 0;      ///< 0: epochs * steps_per_epoch
  int64_t epochs = 0;
  int64_t steps_per_epoch = 0;
  double pct_start = 0.3;
  Anneal anneal_strategy = Anneal::cos;
  bool cycle_momentum = true;   ///< cycles momentum, or beta1 for Adam
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25.0;     ///< the initial rate is max_lr / div_factor
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
