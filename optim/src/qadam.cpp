#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/optim/qadam.h>

#include "fused_optimizer.h"

#include <cmath>
#include <unordered_set>

namespace levin::optim {

/// The parameters whose gradients hold momentum until the step.
struct QAdam::Made : std::unordered_set<const TensorImpl*> {};

QAdam::QAdam(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("QAdam", kernels::adam_step, {"exp_avg", "exp_avg_sq"}, false,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"beta1", &StepArgs::beta1, o.betas.first, {0, 1}},
                      {"beta2", &StepArgs::beta2, o.betas.second, {0, 1}},
                      {"eps", &StepArgs::eps, o.eps},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"warmup_steps", nullptr, static_cast<double>(o.warmup_steps), {.low = 1}}}),
      made_(std::make_unique<Made>()) {
  add_param_groups(std::move(groups));
}

QAdam::~QAdam() = default;
QAdam::QAdam(QAdam&&) noexcept = default;

void QAdam::check(const Settings& s) const {
  FusedOptimizer::check(s);
  if (s.at("capturable") != 0) throw ValueError("[QAdam] its steps cannot be captured into a graph. Leave capturable.");
}

// True once all parameters have done the warm-up, since within a step some groups are one step ahead of others.
bool QAdam::is_frozen() const {
  bool any = false;
  for (const ParamGroup& g : param_groups()) {
    for (const Parameter& p : g.params) {
      const auto steps = static_cast<double>(steps_done(p));
      if (steps > 0 && steps < g["warmup_steps"]) return false;
      any = any || steps > 0;
    }
  }
  return any;
}

void QAdam::to_momentum() {
  const no_grad guard;
  for (const ParamGroup& g : param_groups()) {
    for (const Parameter& p : g.params) {
      if (p.grad().defined()) make_momentum(g, p);
    }
  }
}

void QAdam::make_momentum(const ParamGroup& group, const Parameter& parameter) {
  if (!made_->insert(parameter.impl()).second) return;
  State& s = state_of(parameter);
  const Tensor& grad = parameter.grad();
  if (group["weight_decay"] != 0) grad.add_(parameter.detach(), group["weight_decay"]);
  grad.mul_(1 - group["beta1"]);
  grad.add_(slot(s, 0, parameter), group["beta1"]);
}

void QAdam::step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) {
  if (!is_frozen()) return FusedOptimizer::step_group(group, params);
  for (const Parameter* p : params) frozen_step(group, *p);
}

void QAdam::frozen_step(const ParamGroup& group, const Parameter& parameter) {
  const double number = static_cast<double>(steps_done(parameter) + 1);
  make_momentum(group, parameter);
  made_->erase(parameter.impl());
  State& s = state_of(parameter);
  ++s.step;
  const Tensor &m = slot(s, 0, parameter), &v = slot(s, 1, parameter);
  const double seen = 1 - std::pow(group["beta2"], group["warmup_steps"]);
  const double rate = group["lr"] / (1 - std::pow(group["beta1"], number));
  const Tensor denominator = add(sqrt(mul(v, 1 / seen)), group["eps"]);
  const Tensor moved = sub(parameter.detach(), mul(div(parameter.grad(), denominator), rate));
  // If the gradients were not finite nothing changes; only the device knows.
  const auto keep = [&](const Tensor& next, const Tensor& now) {
    return found_inf().defined() ? where(found_inf().eq(0), next, now) : next;
  };
  parameter.detach().copy_(keep(moved, parameter.detach()));
  m.copy_(keep(parameter.grad(), m));
}

}  // namespace levin::optim
