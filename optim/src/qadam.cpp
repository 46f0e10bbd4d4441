#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/optim/qadam.h>

#include <cmath>
#include <limits>
#include <unordered_set>

#include "fused.h"

namespace levin::optim {

/// The parameters whose gradients hold momentum until the step.
struct QAdam::Made : std::unordered_set<const TensorImpl*> {};

QAdam::QAdam(std::vector<Parameter> params, const Options& options)
    : QAdam(std::vector<ParamGroup>{{.params = std::move(params)}}, options) {}

QAdam::QAdam(std::vector<ParamGroup> groups, const Options& o)
    : Optimizer("QAdam", {"exp_avg", "exp_avg_sq"},
                {{"lr", o.lr},
                 {"beta1", o.betas.first},
                 {"beta2", o.betas.second},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"warmup_steps", static_cast<double>(o.warmup_steps)},
                 {"capturable", 0}}),
      made_(std::make_unique<Made>()) {
  for (ParamGroup& g : groups) add_param_group(std::move(g));
}

QAdam::~QAdam() = default;
QAdam::QAdam(QAdam&&) noexcept = default;

void QAdam::check(const Settings& s) const {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  require_range(s, "lr", 0, kAny);
  require_range(s, "beta1", 0, 1);
  require_range(s, "beta2", 0, 1);
  require_range(s, "eps", 0, kAny);
  require_range(s, "weight_decay", 0, kAny);
  require_range(s, "warmup_steps", 1, kAny);
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
  if (is_frozen()) {
    for (const Parameter* p : params) frozen_step(group, *p);
    return;
  }
  FusedStep step(params);
  for (std::size_t i = 0; i < params.size(); ++i) {
    State& s = state_of(*params[i]);
    kernels::OptimTensor& o = step.tensors[i];
    count_step(s, group, *params[i], o);
    o.first = slot(s, 0, *params[i]).raw_data();
    o.second = slot(s, 1, *params[i]).raw_data();
  }
  step.run(kernels::adam_step, {.tensors = {},
                                .lr = group["lr"],
                                .beta1 = group["beta1"],
                                .beta2 = group["beta2"],
                                .eps = group["eps"],
                                .weight_decay = group["weight_decay"],
                                .guard = guard()});
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
