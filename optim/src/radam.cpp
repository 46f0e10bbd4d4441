#include <levin/optim/radam.h>

#include "fused_optimizer.h"

namespace levin::optim {

RAdam::RAdam(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("RAdam", kernels::radam_step, {"exp_avg", "exp_avg_sq"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"beta1", &StepArgs::beta1, o.betas.first, {0, 1}},
                      {"beta2", &StepArgs::beta2, o.betas.second, {0, 1}},
                      {"eps", &StepArgs::eps, o.eps},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"decoupled_weight_decay", &StepArgs::decoupled, o.decoupled_weight_decay},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

template class FusedOptimizer<kernels::RadamStepArgs>;

}  // namespace levin::optim
