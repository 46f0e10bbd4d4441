#include <levin/optim/sparse_adam.h>

#include <levin/autograd/ops/elementwise.h>

#include <fmt/format.h>

#include <cmath>

namespace levin::optim {

SparseAdam::SparseAdam(std::vector<ParamGroup> groups, const Options& o)
    : ComposedOptimizer("SparseAdam", {"exp_avg", "exp_avg_sq"},
                        {{"lr", o.lr},
                         {"beta1", o.betas.first, {0.0, 1.0}},
                         {"beta2", o.betas.second, {0.0, 1.0}},
                         {"eps", o.eps},
                         {"maximize", o.maximize ? 1.0 : 0.0}}) {
  add_param_groups(std::move(groups));
}

void SparseAdam::update(const ParamGroup& g, int64_t number, Values& v) const {
  Tensor &m = v.slots[0], &s = v.slots[1];
  m = add(m, mul(sub(v.grad, m), 1 - g["beta1"]));
  s = add(s, mul(sub(square(v.grad), s), 1 - g["beta2"]));
  const auto t = static_cast<double>(number);
  const double rate = g["lr"] * std::sqrt(1 - std::pow(g["beta2"], t)) / (1 - std::pow(g["beta1"], t));
  v.param = sub(v.param, mul(div(m, add(sqrt(s), g["eps"])), rate));
}

void SparseAdam::step_group(const ParamGroup&, const std::vector<const Parameter*>& params) {
  throw ValueError(fmt::format(
      "[SparseAdam] the gradient of \"{}\" is dense. Use sparse = true in its embedding, or Adam.", params[0]->name));
}

}  // namespace levin::optim
