#include <levin/optim/nadam.h>

#include <levin/autograd/ops/elementwise.h>

#include <cmath>

namespace levin::optim {

namespace {

double momentum_of(double beta1, double decay, int64_t step) {
  return beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * decay));
}

}  // namespace

NAdam::NAdam(std::vector<ParamGroup> groups, const Options& o)
    : ComposedOptimizer("NAdam", {"exp_avg", "exp_avg_sq"},
                        {{"lr", o.lr},
                         {"beta1", o.betas.first, {0, 1}},
                         {"beta2", o.betas.second, {0, 1}},
                         {"eps", o.eps},
                         {"weight_decay", o.weight_decay},
                         {"momentum_decay", o.momentum_decay},
                         {"decoupled_weight_decay", o.decoupled_weight_decay ? 1.0 : 0.0},
                         {"maximize", o.maximize ? 1.0 : 0.0}}) {
  add_param_groups(std::move(groups));
}

void NAdam::step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) {
  const double beta1 = group["beta1"], decay = group["momentum_decay"];
  if (products_.beta1 != beta1 || products_.decay != decay) products_ = {beta1, decay};
  for (const Parameter* p : params)
    while (static_cast<int64_t>(products_.values.size()) <= steps_done(*p) + 1)
      products_.values.push_back(products_.values.back() *
                                 momentum_of(beta1, decay, static_cast<int64_t>(products_.values.size())));
  ComposedOptimizer::step_group(group, params);
}

void NAdam::update(const ParamGroup& group, int64_t number, Values& v) const {
  const double lr = group["lr"], beta1 = group["beta1"], beta2 = group["beta2"], decay = group["weight_decay"];
  if (decay != 0 && group["decoupled_weight_decay"] != 0)
    v.param = mul(v.param, 1 - lr * decay);
  else if (decay != 0)
    v.grad = add(v.grad, v.param, decay);
  const double now = momentum_of(beta1, group["momentum_decay"], number);
  const double next = momentum_of(beta1, group["momentum_decay"], number + 1);
  const double product = products_.values[static_cast<std::size_t>(number)];
  v.slots[0] = lerp(v.slots[0], v.grad, 1 - beta1);
  v.slots[1] = addcmul(mul(v.slots[1], beta2), v.grad, v.grad, 1 - beta2);
  const double seen = 1 - std::pow(beta2, static_cast<double>(number));
  const Tensor denominator = add(sqrt(div(v.slots[1], seen)), group["eps"]);
  v.param = addcdiv(v.param, v.grad, denominator, -lr * (1 - now) / (1 - product));
  v.param = addcdiv(v.param, v.slots[0], denominator, -lr * next / (1 - product * next));
}

}  // namespace levin::optim
