#include <levin/optim/scheduler.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace levin::optim {

namespace {

Tensor number(double v) { return tensor(v, {.dtype = DType::f64}); }

std::vector<double> rates(const std::vector<ParamGroup>& groups) {
  std::vector<double> result;
  for (const ParamGroup& g : groups) result.push_back(g["lr"]);
  return result;
}

void require_at_least(const char* scheduler, const char* argument, double value, double least) {
  if (!(value >= least))
    throw ValueError(fmt::format("[{}] {} is {}. Give {} or more.", scheduler, argument, value, least));
}

}  // namespace

Scheduler::Scheduler(Optimizer& optimizer) : groups_(optimizer.groups_) {
  for (ParamGroup& g : *groups_) {
    if (!g.initial_lr) g.initial_lr = g["lr"];
    base_lrs_.push_back(*g.initial_lr);
  }
}
Scheduler::Scheduler(Optimizer& optimizer, std::vector<double> base_lrs)
    : groups_(optimizer.groups_), base_lrs_(std::move(base_lrs)) {}
Scheduler::~Scheduler() = default;

std::vector<double> Scheduler::current_lrs(const Optimizer& optimizer) { return rates(*optimizer.groups_); }

void Scheduler::apply() {
  for (std::size_t i = 0; i < base_lrs_.size(); ++i) (*groups_)[i]["lr"] = lr(i);
}

void Scheduler::start() {
  const std::vector<double> current = rates(*groups_);
  apply();
  for (std::size_t i = 0; i < base_lrs_.size(); ++i)
    if (base_lrs_[i] != 0 && current[i] != base_lrs_[i]) (*groups_)[i]["lr"] = current[i] * (lr(i) / base_lrs_[i]);
}

void Scheduler::step() {
  const std::vector<double> current = rates(*groups_);
  std::vector<double> own;
  for (std::size_t i = 0; i < base_lrs_.size(); ++i) own.push_back(lr(i));
  ++last_epoch_;
  apply();
  for (std::size_t i = 0; i < own.size(); ++i)
    if (own[i] != 0 && current[i] != own[i]) (*groups_)[i]["lr"] = current[i] * (lr(i) / own[i]);
}

void Scheduler::scale_base_lrs(double factor) {
  for (double& lr : base_lrs_) lr *= factor;
}

void Scheduler::set_momentum(double momentum) const {
  for (ParamGroup& g : *groups_) g[g.has("beta1") ? "beta1" : "momentum"] = momentum;
}

void Scheduler::require_momentum(const char* scheduler) const {
  for (const ParamGroup& g : *groups_)
    if (!g.has("momentum") && !g.has("beta1"))
      throw ValueError(
          fmt::format("[{}] the optimizer has neither momentum nor betas. Set cycle_momentum = false.", scheduler));
}

std::vector<double> Scheduler::get_last_lr() const { return rates(*groups_); }

StateDict Scheduler::state_dict() const {
  StateDict state{{"last_epoch", number(static_cast<double>(last_epoch_))}};
  for (std::size_t i = 0; i < base_lrs_.size(); ++i) state.set("base_lrs." + std::to_string(i), number(base_lrs_[i]));
  return state;
}

void Scheduler::load_state_dict(const StateDict& state) {
  std::vector<double> loaded;
  for (std::size_t i = 0; i < base_lrs_.size(); ++i)
    loaded.push_back(state.at("base_lrs." + std::to_string(i)).item<double>());
  last_epoch_ = static_cast<int64_t>(state.at("last_epoch").item<double>());
  base_lrs_ = loaded;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : Scheduler(optimizer), factor_(std::move(factor)) {
  start();
}
double LambdaLR::lr(std::size_t i) const { return base_lr(i) * factor_(last_epoch()); }

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : Scheduler(optimizer), factor_(std::move(factor)) {
  start();
}
double MultiplicativeLR::lr(std::size_t i) const {
  if (steps_ > last_epoch()) product_ = 1.0, steps_ = 0;
  while (steps_ < last_epoch()) product_ *= factor_(++steps_);
  return base_lr(i) * product_;
}

StepLR::StepLR(Optimizer& optimizer, const Options& options) : Scheduler(optimizer), options_(options) {
  require_at_least("StepLR", "step_size", static_cast<double>(options.step_size), 1);
  start();
}
double StepLR::lr(std::size_t i) const {
  return base_lr(i) * std::pow(options_.gamma, static_cast<double>(last_epoch() / options_.step_size));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const Options& options) : Scheduler(optimizer), options_(options) {
  if (!std::ranges::is_sorted(options.milestones))
    throw ValueError(fmt::format("[MultiStepLR] the milestones {} are not in order. Sort them.",
                                 fmt::join(options.milestones, ", ")));
  start();
}
double MultiStepLR::lr(std::size_t i) const {
  const auto& all = options_.milestones;
  const auto passed = std::ranges::upper_bound(all, last_epoch()) - all.begin();
  return base_lr(i) * std::pow(options_.gamma, static_cast<double>(passed));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : Scheduler(optimizer), gamma_(gamma) {
  start();
}
double ExponentialLR::lr(std::size_t i) const {
  return base_lr(i) * std::pow(gamma_, static_cast<double>(last_epoch()));
}

ConstantLR::ConstantLR(Optimizer& optimizer, const Options& options) : Scheduler(optimizer), options_(options) {
  if (!(options.factor >= 0 && options.factor <= 1))
    throw ValueError(fmt::format("[ConstantLR] factor is {}. Give a value from 0 to 1.", options.factor));
  start();
}
double ConstantLR::lr(std::size_t i) const {
  return last_epoch() < options_.total_iters ? base_lr(i) * options_.factor : base_lr(i);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, const Options& options) : Scheduler(optimizer), options_(options) {
  require_at_least("PolynomialLR", "total_iters", static_cast<double>(options.total_iters), 1);
  start();
}
double PolynomialLR::lr(std::size_t i) const {
  const double done =
      static_cast<double>(std::min(last_epoch(), options_.total_iters)) / static_cast<double>(options_.total_iters);
  return base_lr(i) * std::pow(1.0 - done, options_.power);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : Scheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  require_at_least("CosineAnnealingLR", "t_max", static_cast<double>(t_max), 1);
  start();
}
double CosineAnnealingLR::lr(std::size_t i) const {
  const double angle = std::numbers::pi * static_cast<double>(last_epoch()) / static_cast<double>(t_max_);
  return eta_min_ + (base_lr(i) - eta_min_) * (1.0 + std::cos(angle)) / 2.0;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, const Options& options)
    : Scheduler(optimizer), options_(options) {
  require_at_least("CosineAnnealingWarmRestarts", "t_0", static_cast<double>(options.t_0), 1);
  require_at_least("CosineAnnealingWarmRestarts", "t_mult", static_cast<double>(options.t_mult), 1);
  start();
}
double CosineAnnealingWarmRestarts::lr(std::size_t i) const {
  int64_t step = last_epoch(), period = options_.t_0;
  if (options_.t_mult == 1) step %= period;
  for (; step >= period; period *= options_.t_mult) step -= period;
  const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(period);
  return options_.eta_min + (base_lr(i) - options_.eta_min) * (1.0 + std::cos(angle)) / 2.0;
}

CyclicLR::CyclicLR(Optimizer& optimizer, const Options& options) : Scheduler(optimizer), options_(options) {
  require_at_least("CyclicLR", "step_size_up", static_cast<double>(options.step_size_up), 1);
  require_at_least("CyclicLR", "step_size_down", static_cast<double>(options.step_size_down.value_or(1)), 1);
  if (options.cycle_momentum) require_momentum("CyclicLR");
  CyclicLR::apply();
}

double CyclicLR::height() const {
  const auto up = static_cast<double>(options_.step_size_up), now = static_cast<double>(last_epoch());
  const double length = up + static_cast<double>(options_.step_size_down.value_or(options_.step_size_up));
  const double cycle = std::floor(1.0 + now / length), x = 1.0 + now / length - cycle, turn = up / length;
  const double part = x <= turn ? x / turn : (x - 1.0) / (turn - 1.0);
  switch (options_.mode) {
    case CyclicMode::triangular2:
      return part / std::pow(2.0, cycle - 1.0);
    case CyclicMode::exp_range:
      return part * std::pow(options_.gamma, now);
    default:
      return part;
  }
}

double CyclicLR::lr(std::size_t) const { return options_.base_lr + (options_.max_lr - options_.base_lr) * height(); }

void CyclicLR::step() {
  advance();
  apply();
}

void CyclicLR::apply() {
  Scheduler::apply();
  if (options_.cycle_momentum)
    set_momentum(options_.max_momentum - (options_.max_momentum - options_.base_momentum) * height());
}

LinearLR::LinearLR(Optimizer& optimizer, const Options& options) : Scheduler(optimizer), options_(options) {
  require_at_least("LinearLR", "total_iters", static_cast<double>(options.total_iters), 1);
  if (!(options.start_factor > 0 && options.start_factor <= 1))
    throw ValueError(
        fmt::format("[LinearLR] start_factor is {}. Give a value above 0 and at most 1.", options.start_factor));
  if (!(options.end_factor >= 0 && options.end_factor <= 1))
    throw ValueError(fmt::format("[LinearLR] end_factor is {}. Give a value from 0 to 1.", options.end_factor));
  start();
}
double LinearLR::lr(std::size_t i) const {
  const double done =
      static_cast<double>(std::min(last_epoch(), options_.total_iters)) / static_cast<double>(options_.total_iters);
  return base_lr(i) * (options_.start_factor + (options_.end_factor - options_.start_factor) * done);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const Options& options) : Scheduler(optimizer), options_(options) {
  Options& o = options_;
  if (o.total_steps == 0) o.total_steps = o.epochs * o.steps_per_epoch;
  if (o.total_steps < 1)
    throw ValueError(
        fmt::format("[OneCycleLR] total_steps is {}, epochs {} and steps_per_epoch {}. Give total_steps, or the "
                    "other two, of 1 or more.",
                    options.total_steps, o.epochs, o.steps_per_epoch));
  if (!(o.pct_start >= 0 && o.pct_start <= 1))
    throw ValueError(fmt::format("[OneCycleLR] pct_start is {}. Give a fraction between 0 and 1.", o.pct_start));
  if (o.cycle_momentum) require_momentum("OneCycleLR");
  const double first = o.max_lr / o.div_factor, last = first / o.final_div_factor;
  const double high = o.max_momentum, low = o.base_momentum;
  const auto steps = static_cast<double>(o.total_steps);
  phases_ = {{o.pct_start * steps - 1, first, o.max_lr, high, low}};
  if (o.three_phase) {
    phases_.push_back({2 * o.pct_start * steps - 2, o.max_lr, first, low, high});
    phases_.push_back({steps - 1, first, last, high, high});
  } else {
    phases_.push_back({steps - 1, o.max_lr, last, low, high});
  }
  OneCycleLR::apply();
}

double OneCycleLR::at(double Phase::*from, double Phase::*to) const {
  const auto now = static_cast<double>(last_epoch());
  double begin = 0.0;
  for (std::size_t i = 0;; ++i) {
    const Phase& phase = phases_[i];
    if (now <= phase.end || i + 1 == phases_.size()) {
      const double length = phase.end - begin, a = phase.*from, b = phase.*to;
      const double part = length != 0.0 ? (now - begin) / length : 1.0;
      return options_.anneal_strategy == Anneal::linear ? (b - a) * part + a
                                                        : b + (a - b) / 2.0 * (std::cos(std::numbers::pi * part) + 1.0);
    }
    begin = phase.end;
  }
}

double OneCycleLR::lr(std::size_t) const { return at(&Phase::lr_from, &Phase::lr_to); }

void OneCycleLR::apply() {
  Scheduler::apply();
  if (options_.cycle_momentum) set_momentum(at(&Phase::momentum_from, &Phase::momentum_to));
}

void OneCycleLR::step() {
  if (last_epoch() >= options_.total_steps)
    throw ValueError(
        fmt::format("[OneCycleLR] step {} is beyond total_steps = {}. Give the whole run's number of steps.",
                    last_epoch() + 1, options_.total_steps));
  advance();
  apply();
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const Options& options)
    : groups_(optimizer.groups_),
      options_(options),
      best_(options.mode == PlateauMode::min ? std::numeric_limits<double>::infinity()
                                             : -std::numeric_limits<double>::infinity()) {
  if (!(options.factor < 1.0 && options.factor >= 0.0))
    throw ValueError(fmt::format("[ReduceLROnPlateau] factor is {}. Give a value below 1.", options.factor));
  if (options.patience < 0 || options.cooldown < 0)
    throw ValueError(fmt::format("[ReduceLROnPlateau] patience {} and cooldown {} must be 0 or more.", options.patience,
                                 options.cooldown));
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double t = options_.threshold;
  const bool relative = options_.threshold_mode == ThresholdMode::rel;
  if (options_.mode == PlateauMode::min) return metric < (relative ? best_ * (1.0 - t) : best_ - t);
  return metric > (relative ? best_ * (1.0 + t) : best_ + t);
}

void ReduceLROnPlateau::reduce() {
  for (ParamGroup& g : *groups_) {
    const double before = g["lr"], after = std::max(before * options_.factor, options_.min_lr);
    if (before - after > options_.eps) g["lr"] = after;
  }
}

void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ > options_.patience) {
    reduce();
    cooldown_left_ = options_.cooldown;
    bad_epochs_ = 0;
  }
}

std::vector<double> ReduceLROnPlateau::get_last_lr() const { return rates(*groups_); }

StateDict ReduceLROnPlateau::state_dict() const {
  return {{"best", number(best_)},
          {"num_bad_epochs", number(static_cast<double>(bad_epochs_))},
          {"cooldown_counter", number(static_cast<double>(cooldown_left_))},
          {"last_epoch", number(static_cast<double>(last_epoch_))}};
}

void ReduceLROnPlateau::load_state_dict(const StateDict& state) {
  const double best = state.at("best").item<double>();
  const auto bad = state.at("num_bad_epochs").item<int64_t>(), left = state.at("cooldown_counter").item<int64_t>();
  last_epoch_ = state.at("last_epoch").item<int64_t>();
  best_ = best;
  bad_epochs_ = bad;
  cooldown_left_ = left;
}

}  // namespace levin::optim
