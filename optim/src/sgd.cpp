#include <levin/optim/sgd.h>

#include "fused_optimizer.h"

#include <fmt/format.h>

namespace levin::optim {

SGD::SGD(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("SGD", kernels::sgd_step, {"momentum_buffer"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"momentum", &StepArgs::momentum, o.momentum},
                      {"dampening", &StepArgs::dampening, o.dampening, kAnyNumber},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"nesterov", &StepArgs::nesterov, o.nesterov},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

void SGD::check(const Settings& s) const {
  FusedOptimizer::check(s);
  if (s.at("nesterov") != 0 && (s.at("momentum") <= 0 || s.at("dampening") != 0))
    throw ValueError(fmt::format("[SGD] nesterov needs a momentum above 0 and no dampening; they are {} and {}.",
                                 s.at("momentum"), s.at("dampening")));
}

void SGD::check_rows(const ParamGroup& group, const Parameter& p) const { check_row_decay("SGD", group, p); }

void SGD::step_rows(const ParamGroup& group, const Parameter& p, const RowGradient& gradient) {
  if (group["momentum"] == 0) return FusedOptimizer::step_rows(group, p, gradient);
  densify_grad(p);
  step_group(group, {&p});
}

template class FusedOptimizer<kernels::SgdStepArgs>;

}  // namespace levin::optim
