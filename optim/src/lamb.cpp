#include <levin/optim/lamb.h>

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/reduce.h>

#include <cmath>

namespace levin::optim {

LAMB::LAMB(std::vector<ParamGroup> groups, const Options& o)
    : ComposedOptimizer("LAMB", {"exp_avg", "exp_avg_sq"},
                        {{"lr", o.lr},
                         {"beta1", o.betas.first, {0, 1}},
                         {"beta2", o.betas.second, {0, 1}},
                         {"eps", o.eps},
                         {"weight_decay", o.weight_decay},
                         {"maximize", o.maximize ? 1.0 : 0.0}}) {
  add_param_groups(std::move(groups));
}

void LAMB::update(const ParamGroup& group, int64_t number, Values& v) const {
  const double beta1 = group["beta1"], beta2 = group["beta2"], n = static_cast<double>(number);
  v.slots[0] = lerp(v.slots[0], v.grad, 1 - beta1);
  v.slots[1] = addcmul(mul(v.slots[1], beta2), v.grad, v.grad, 1 - beta2);
  const Tensor mean = div(v.slots[0], 1 - std::pow(beta1, n)), square = div(v.slots[1], 1 - std::pow(beta2, n));
  const Tensor direction = add(div(mean, add(sqrt(square), group["eps"])), v.param, group["weight_decay"]);
  const Tensor of_param = norm(v.param), of_direction = norm(direction);
  const Tensor usable = logical_and(gt(of_param, 0), gt(of_direction, 0));
  const Tensor ratio = where(usable, div(of_param, of_direction), 1.0);
  v.param = sub(v.param, mul(direction, mul(ratio, group["lr"])));
}

}  // namespace levin::optim
